/** The contract (docs/reference/contract.md), §2.1 and §4.1: GET /challenge. Sites and origins are in sites.ts. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { assertPassed, assertRefused } from './answers.ts'
import type { Subject } from './support.ts'

/** One fewer than the letters and digits that follow `site_` in a good key. */
const A = 'a'.repeat(21)
const MALFORMED_SITE_KEYS = ['x', 'site_', `site_${A}`, `site_${A}aa`, `site_${A}-`, `SITE_${A}a`, `sk_${A}a`]
const LIMIT = 30 // challenges a minute of an address at a site

export function challengeTests(subject: Subject): void {
  test('§2.1, §4.1 success response: a Challenge object, with the four fields of §2.1 and no other', async () => {
    const before = Date.now()
    const answer = await subject.visitor().challenge()
    const after = Date.now()
    assert.equal(answer.status, 200, answer.text)
    assert.match(String(answer.headers['content-type']), /^application\/json\b/)
    const { nonce, difficulty, algorithm, expiresAt, ...others } = answer.json
    assert.match(nonce, /^[0-9a-f]{32}$/)
    assert.equal(difficulty, 16)
    assert.equal(algorithm, 'sha256')
    // The lifetime is decided: 120 seconds from issue.
    assert.ok(Number.isInteger(expiresAt))
    assert.ok(expiresAt >= before + 120_000 && expiresAt <= after + 120_000, `${expiresAt}`)
    assert.deepEqual(others, {})
  })

  test("§2.1 difficulty: an integer from 16 to 28; a lone visitor gets the site's base", async () => {
    for (const base of [16, 18, 23, 28]) {
      const visitor = await subject.visitorOf({ difficulty: { base, min: 16, max: 28 } })
      assert.equal((await visitor.challenge()).json.difficulty, base)
    }
  })

  test('§2.1 difficulty is adaptive: it climbs for an address that nears its limit, and only for that one', async () => {
    const visitor = await subject.visitorOf()
    const answers: Answer[] = []
    while (answers.length < LIMIT) answers.push(await visitor.challenge())
    assert.equal(new Set(answers.map(({ json }) => json.nonce)).size, LIMIT, 'another nonce each time')
    const difficulties = answers.map(({ json }) => json.difficulty)
    assert.equal(difficulties[0], 16)
    assert.equal(difficulties.at(-1), 20, "four bits at the limit of 30 at a site, not at the address's 60")
    assert.deepEqual(difficulties, difficulties.toSorted(), 'it never falls')
    assert.equal((await subject.visitor(visitor.site).challenge()).json.difficulty, 16)
  })

  test('§2.1 expiresAt, decided: later where 4 MH/s would need longer, at most 10 minutes', async () => {
    const visitor = await subject.visitorOf({ difficulty: { base: 28, min: 16, max: 28 } })
    const before = Date.now()
    const lifetimeMs = (await visitor.challenge()).json.expiresAt - before
    const slowDeviceMs = (Math.log(1000) * 2 ** 28) / 4000 // all but one in 1000 are done; 4000 hashes a ms
    assert.ok(lifetimeMs >= slowDeviceMs && lifetimeMs <= 600_000 + 1000, `${lifetimeMs} ms`)
  })

  for (const siteKey of ['', ...MALFORMED_SITE_KEYS]) {
    test(`§5 rule 1, §7: a missing or malformed X-Site-Key gives 400 and spends nothing: "${siteKey}"`, async () => {
      const [url, visitor] = [`${subject.url}/challenge`, subject.visitor()]
      const stranger = visitor.at({ ...visitor.site, siteKey })
      const code = siteKey === '' ? 'site-key-missing' : 'site-key-malformed'
      assertRefused(await stranger.challenge(), 400, code)
      if (siteKey === '') assertRefused(await call(url, { from: freshAddress() }), 400, code)
      const solution = await visitor.solved()
      assertRefused(await stranger.verify(solution), 400, code)
      assertPassed(await visitor.verify(solution))
    })
  }

  test('§4.1 path: a query does not change it', async () => {
    const headers = { 'X-Site-Key': subject.site.siteKey }
    const url = `${subject.url}/challenge?time=1`
    assert.equal((await call(url, { headers, from: freshAddress() })).status, 200)
  })
}
