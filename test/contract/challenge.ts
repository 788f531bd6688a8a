/** Contract §2.1 and §4.1: GET /challenge. Sites and origins are in sites.ts. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { assertFailedResult, assertPassed, assertRefused } from './answers.ts'
import { type Subject, untilAll } from './support.ts'

const A = 'a'.repeat(21)
const MALFORMED_SITE_KEYS = ['x', 'site_', `site_${A}`, `site_${A}aa`, `site_${A}-`, `SITE_${A}a`, `sk_${A}a`]

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
    while (answers.length < 30) answers.push(await visitor.challenge())
    assert.equal(new Set(answers.map(({ json }) => json.nonce)).size, 30, 'another nonce each time')
    const difficulties = answers.map(({ json }) => json.difficulty)
    assert.equal(difficulties[0], 16)
    assert.equal(difficulties.at(-1), 20, "four bits at the site's limit, not at the address's")
    assert.equal(difficulties.join(), difficulties.toSorted().join())
    assert.equal((await subject.visitor(visitor.site).challenge()).json.difficulty, 16)
  })

  test('§2.3, §2.4, decided: by the weights of its site a score is too low, which counts as a failure; a refusal by IP rules does not', async () => {
    const [low, blocked] = [freshAddress(), freshAddress()]
    const ipRules = { allow: [], block: [blocked] }
    const scoreWeights = { noLanguages: 0.5, recentFailure: 0.5 }
    const site = await subject.createSite({ plan: 'pro', threshold: 0.6, ipRules, scoreWeights })
    const attempt = async (from: string, noLanguages: boolean) => {
      const visitor = subject.visitor(site, from)
      return visitor.verify(await visitor.solved({ environment: { noLanguages } }))
    }
    for (const from of [low, blocked]) assertFailedResult(await attempt(from, true))
    assertFailedResult(await attempt(low, false))
    const difficulty = { base: 17, min: 16, max: 28 } // shows when the change has arrived
    await subject.changeSite(site.siteKey, { ipRules: { allow: [], block: [] }, difficulty })
    const isSeen = ({ json }: Answer) => json.difficulty === 17
    await untilAll('the change, in all workers', isSeen, () => subject.visitor(site).challenge())
    assertPassed(await attempt(blocked, false))
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
