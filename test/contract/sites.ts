/** Contract §5 and §7: the sites and origins for which /challenge and /verify answer. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SiteOptions } from '../../src/sites/sites.ts'
import type { Answer } from '../harness/http.ts'
import { assertPassed, assertRefused } from './answers.ts'
import { type Subject, UNKNOWN_SITE_KEY, type Visitor } from './support.ts'

type Ask = (visitor: Visitor, headers?: Record<string, string>) => Promise<Answer>

/** One good request to each endpoint, as far as site and origin allow it. */
const ENDPOINTS: Readonly<Record<string, Ask>> = {
  '/challenge': (visitor, headers) => visitor.challenge(headers),
  '/verify': async (visitor, headers) => visitor.verify(await visitor.agedSolution(1000), headers),
}

const SHOP = { origins: ['https://shop.example'] }
const STRICT = { ...SHOP, requireOrigin: true }
const WILDCARD = { origins: ['https://*.shop.example'] }

/** domain/rules.test.ts has all ways in which an origin can differ from the listed one. */
const ORIGIN_CASES: readonly [
  about: string,
  site: SiteOptions,
  origin: string | undefined,
  isAllowed: boolean,
][] = [
  ['the listed origin', SHOP, 'https://shop.example', true],
  ['another host', SHOP, 'https://other.example', false],
  ['null', SHOP, 'null', false],
  ['a subdomain of a pattern', WILDCARD, 'https://a.shop.example', true],
  ['no Origin header', SHOP, undefined, true],
  ['no Origin header, but requireOrigin', STRICT, undefined, false],
  ['the listed one, requireOrigin', STRICT, 'https://shop.example', true],
  ['any origin where none is listed', {}, 'https://any.example', true],
]

export function siteTests(subject: Subject): void {
  for (const [path, ask] of Object.entries(ENDPOINTS)) {
    test(`§5 rule 2: only the key of an active site is served on ${path}; any other gives 403`, async () => {
      const { site } = subject
      assert.equal((await ask(subject.visitor())).status, 200)
      for (const siteKey of [UNKNOWN_SITE_KEY, oneCaseSwapped(site.siteKey)])
        assertRefused(await ask(subject.visitor({ ...site, siteKey })), 403, 'site-unknown')
      assertRefused(await ask(await subject.visitorOf({ active: false })), 403, 'site-inactive')
    })

    for (const [about, site, origin, isAllowed] of ORIGIN_CASES) {
      test(`§5 rule 2: ${path} ${isAllowed ? 'serves' : 'refuses with 403'}: ${about}`, async () => {
        const visitor = await subject.visitorOf(site)
        const answer = await ask(visitor, origin === undefined ? {} : { Origin: origin })
        if (isAllowed) return assert.equal(answer.status, 200, answer.text)
        assertRefused(answer, 403, 'origin-not-allowed')
        assert.ok(answer.json.error.includes(origin ?? 'no Origin header'), answer.json.error)
      })
    }
  }

  test('§5 rule 2: a page of the own origin, of which browsers send none with a GET, needs none', async () => {
    const { site } = await subject.visitorOf(STRICT)
    const challengeOf = (headers: Record<string, string>) => subject.visitor(site).challenge(headers)
    assert.equal((await challengeOf({ 'Sec-Fetch-Site': 'same-origin' })).status, 200)
    for (const headers of [
      ...['same-site', 'cross-site', 'none', ''].map(text => ({ 'Sec-Fetch-Site': text })),
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://other.example' },
    ])
      assertRefused(await challengeOf(headers), 403, 'origin-not-allowed')
  })

  test('§5 rule 2: a refused origin spends nothing: the same solution passes from the allowed one', async () => {
    const visitor = await subject.visitorOf(SHOP)
    const solution = await visitor.agedSolution(1000)
    const foreign = await visitor.verify(solution, { Origin: 'https://other.example' })
    assertRefused(foreign, 403, 'origin-not-allowed')
    assertPassed(await visitor.verify(solution, { Origin: 'https://shop.example' }))
  })
}

/** The key with the first letter behind `site_` in the other case. */
function oneCaseSwapped(siteKey: string): string {
  const index = 5 + siteKey.slice(5).search(/[a-zA-Z]/)
  const swapped = String.fromCharCode(siteKey.charCodeAt(index) ^ 0x20)
  return siteKey.slice(0, index) + swapped + siteKey.slice(index + 1)
}
