/** Contract, sections 2.1 and 4.1: GET /challenge. Sites and origins are in sites.test.ts. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { call, freshAddress } from '../harness/http.ts'
import { assertPassed, assertRefused, type Subject, wrongCounter } from './support.ts'

const MALFORMED_SITE_KEYS = [
  'x',
  'site_',
  `site_${'a'.repeat(21)}`,
  `site_${'a'.repeat(23)}`,
  `site_${'a'.repeat(21)}-`,
  `SITE_${'a'.repeat(22)}`,
  `sk_${'a'.repeat(22)}`,
]

export function challengeTests(subject: Subject): void {
  test('§4.1 success response: a Challenge object, with the four fields of §2.1 and no other', async () => {
    const answer = await subject.client.challenge(subject.site.siteKey, { from: freshAddress() })
    assert.equal(answer.status, 200, answer.text)
    assert.match(String(answer.headers['content-type']), /^application\/json\b/)
    assert.deepEqual(Object.keys(answer.json).sort(), ['algorithm', 'difficulty', 'expiresAt', 'nonce'])
  })

  test('§2.1 nonce: a 32-character hexadecimal value, another one each time', async () => {
    const from = freshAddress()
    const nonces = new Set<string>()
    for (let count = 0; count < 10; count++) {
      const { json } = await subject.client.challenge(subject.site.siteKey, { from })
      assert.match(json.nonce, /^[0-9a-f]{32}$/)
      nonces.add(json.nonce)
    }
    assert.equal(nonces.size, 10)
  })

  test("§2.1 difficulty: an integer from 16 to 28; a lone visitor gets the site's base", async () => {
    for (const base of [16, 18, 23, 28]) {
      const site = await subject.createSite({ difficulty: { base, min: 16, max: 28 } })
      const { json } = await subject.client.challenge(site.siteKey, { from: freshAddress() })
      assert.equal(json.difficulty, base)
    }
  })

  test('§2.1 difficulty, decided: the default base is 18 bits', async () => {
    const { siteKey } = await subject.service.createSite()
    const { json } = await subject.client.challenge(siteKey, { from: freshAddress() })
    assert.equal(json.difficulty, 18)
  })

  test('§2.1 difficulty is adaptive: it climbs for an address that nears its limit, and only for that one', async () => {
    const { siteKey } = await subject.createSite()
    const difficulties = await difficultiesOf(siteKey, 30)
    assert.equal(difficulties[0], 16)
    assert.ok(difficulties.at(-1)! > 16, `the last of 30 is ${difficulties.at(-1)}`)
    for (let index = 1; index < 30; index++) assert.ok(difficulties[index]! >= difficulties[index - 1]!)
    const other = await subject.client.challenge(siteKey, { from: freshAddress() })
    assert.equal(other.json.difficulty, 16)
  })

  test("§2.1 difficulty: adapting never leaves the range of 16 to 28, nor the site's own bounds", async () => {
    const top = await subject.createSite({ difficulty: { base: 27, min: 16, max: 28 } })
    assert.equal(Math.max(...(await difficultiesOf(top.siteKey, 30))), 28)
    const capped = await subject.createSite({ difficulty: { base: 16, min: 16, max: 17 } })
    assert.equal(Math.max(...(await difficultiesOf(capped.siteKey, 30))), 17)
  })

  test('§2.1 difficulty, decided: failed verifications of an address raise it', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    const { nonce } = (await subject.client.challenge(siteKey, { from })).json
    const wrong = { ...forgedSolution(), nonce, counter: wrongCounter(nonce) }
    for (let count = 0; count < 3; count++) {
      assert.equal((await subject.client.verify(siteKey, wrong, { from })).json.passed, false)
    }
    const { json } = await subject.client.challenge(siteKey, { from })
    assert.ok(json.difficulty > 16, `after three failures it is ${json.difficulty}`)
  })

  test('§2.1 difficulty, decided: too low a score counts as a failure, a refusal by IP rules does not', async () => {
    const blocked = freshAddress()
    const low = freshAddress()
    const { siteKey } = await subject.createSite({
      plan: 'pro',
      threshold: 1,
      ipRules: { allow: [], block: [blocked] },
    })
    for (const [from, isFailure] of [
      [low, true],
      [blocked, false],
    ] as const) {
      for (let count = 0; count < 3; count++) {
        const solution = await subject.client.solved(
          siteKey,
          { from },
          { environment: { noLanguages: true } },
        )
        assert.equal((await subject.client.verify(siteKey, solution, { from })).json.passed, false)
      }
      const { json } = await subject.client.challenge(siteKey, { from })
      assert.equal(json.difficulty > 16, isFailure, `${json.difficulty} bits`)
    }
  })

  test('§2.1 algorithm: always sha256', async () => {
    const { json } = await subject.client.challenge(subject.site.siteKey, { from: freshAddress() })
    assert.equal(json.algorithm, 'sha256')
  })

  test('§2.1 expiresAt: Unix time in milliseconds; decided: 120 seconds from issue', async () => {
    const before = Date.now()
    const { json } = await subject.client.challenge(subject.site.siteKey, { from: freshAddress() })
    const after = Date.now()
    assert.ok(Number.isInteger(json.expiresAt))
    assert.ok(json.expiresAt >= before + 120_000 && json.expiresAt <= after + 120_000, `${json.expiresAt}`)
  })

  test('§2.1 expiresAt, decided: later where 4 MH/s would need longer, at most 10 minutes', async () => {
    const site = await subject.createSite({ difficulty: { base: 28, min: 16, max: 28 } })
    const before = Date.now()
    const { json } = await subject.client.challenge(site.siteKey, { from: freshAddress() })
    const lifetimeMs = json.expiresAt - before
    const slowDeviceMs = (Math.log(1000) * 2 ** 28) / 4000
    assert.ok(lifetimeMs >= slowDeviceMs && lifetimeMs <= 600_000 + 1000, `${lifetimeMs} ms`)
  })

  test('§5 rule 1: a missing X-Site-Key on /challenge gives 400', async () => {
    const from = freshAddress()
    assertRefused(await call(`${subject.url}/challenge`, { from }), 400, 'site-key-missing')
    assertRefused(await subject.client.challenge('', { from }), 400, 'site-key-missing')
  })

  for (const siteKey of MALFORMED_SITE_KEYS) {
    test(`§5 rule 1: a malformed X-Site-Key on /challenge gives 400: ${siteKey}`, async () => {
      const from = freshAddress()
      assertRefused(await subject.client.challenge(siteKey, { from }), 400, 'site-key-malformed')
    })

    test(`§7 /verify 400: a malformed X-Site-Key: ${siteKey}`, async () => {
      const from = freshAddress()
      const solution = await subject.client.solved(subject.site.siteKey, { from })
      assertRefused(await subject.client.verify(siteKey, solution, { from }), 400, 'site-key-malformed')
      assertPassed(await subject.client.verify(subject.site.siteKey, solution, { from }))
    })
  }

  test('§7 /verify: a missing X-Site-Key gives 400', async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    assertRefused(await subject.client.verify('', solution, { from }), 400, 'site-key-missing')
    assertPassed(await subject.client.verify(subject.site.siteKey, solution, { from }))
  })

  test('§4.1 path: a query does not change it', async () => {
    const headers = { 'X-Site-Key': subject.site.siteKey }
    const url = `${subject.url}/challenge?time=1`
    assert.equal((await call(url, { headers, from: freshAddress() })).status, 200)
  })

  async function difficultiesOf(siteKey: string, count: number): Promise<number[]> {
    const from = freshAddress()
    const difficulties: number[] = []
    for (let index = 0; index < count; index++) {
      const answer = await subject.client.challenge(siteKey, { from })
      assert.equal(answer.status, 200, answer.text)
      difficulties.push(answer.json.difficulty)
    }
    return difficulties
  }
}

function forgedSolution() {
  return { nonce: '0'.repeat(32), counter: 0, fingerprintHash: '0'.repeat(64) }
}
