/**
 * The whole contract (docs/reference/contract.md), §1 to §8, over HTTP against the forked service with its default limits and lifetimes,
 * on each store. Every answer is checked against the OpenAPI document.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { minuteTests } from './limits.ts'
import { OpenapiChecker, SEEN_BY_CONTRACT_TEST } from './openapi-checker.ts'
import { CONTRACT, only, type SectionName } from './sections.ts'
import { onEachStore } from './support.ts'

/** TEST_SECTION runs one section alone. */
const section = process.env.TEST_SECTION

const checker = new OpenapiChecker()
checker.listen() // to every answer to a call (harness/http.ts)

test('§4.4: by the OpenAPI document, each answer of /challenge and /verify is for any origin, and none of the others has CORS', () => {
  for (const [path, item] of Object.entries<object>(checker.document.paths))
    for (const { responses } of Object.values(item))
      for (const [status, { headers }] of Object.entries<{ headers: object }>(responses)) {
        const names = Object.keys(headers).filter(name =>
          /^(access-control-(allow-origin|expose)|vary$)/i.test(name),
        )
        const isForBrowsers = path === '/challenge' || path === '/verify'
        const expected = isForBrowsers ? ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers'] : []
        // Any page may read the document too; as a file it has other headers.
        if (path !== '/openapi.json') assert.deepEqual(names, expected, `${path} ${status}`)
      }
  const { headers } = checker.document.components
  assert.equal(headers['Access-Control-Allow-Origin'].schema.const, '*')
  assert.equal(headers['Access-Control-Allow-Origin'].required, true)
})

if (section === undefined) {
  // The search for secrets at the end of a run (test/canaries.ts) then reads a line of every request, good and bad.
  onEachStore(CONTRACT, { env: { LOG_LEVEL: 'trace' }, waiting: minuteTests })
  test('there is nothing in the OpenAPI document that was not seen, outages aside', () => {
    assert.deepEqual(checker.unseen(SEEN_BY_CONTRACT_TEST), [])
  })
} else onEachStore(only(section as SectionName))
