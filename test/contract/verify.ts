/** Contract, sections 2.2, 2.3, 3 and 4.2: POST /verify. Bodies that are wrong are in verify-bodies.test.ts. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { freshAddress } from '../harness/http.ts'
import {
  assertFailedResult,
  assertPassed,
  assertRefused,
  freshFingerprint,
  QUICK_DIFFICULTY,
  type Subject,
  wrongCounter,
} from './support.ts'

/** By the words of the design alone, apart from everything in src/: counts the zero bits of a binary string. */
function solveByTheBook(nonce: string, difficulty: number): number {
  for (let counter = 0; ; counter++) {
    const hex = createHash('sha256').update(`${nonce}${counter}`, 'utf8').digest('hex')
    const bits = BigInt(`0x${hex}`).toString(2).padStart(256, '0')
    if (bits.startsWith('0'.repeat(difficulty))) return counter
  }
}

export function verifyTests(subject: Subject): void {
  test('§2.3 when passed: token is a string, passed is true, expiresAt is a number', async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const answer = await subject.client.verify(subject.site.siteKey, solution, { from })
    assertPassed(answer)
    assert.match(String(answer.headers['content-type']), /^application\/json\b/)
    assert.deepEqual(Object.keys(answer.json).sort(), ['expiresAt', 'passed', 'token'])
    assert.equal(typeof answer.json.token, 'string')
    assert.equal(typeof answer.json.expiresAt, 'number')
  })

  test('§4.2 rule 3: a failed verification is 200 with passed false, token null, expiresAt null', async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const counter = wrongCounter(solution.nonce)
    assertFailedResult(await subject.client.verify(subject.site.siteKey, { ...solution, counter }, { from }))
  })

  test('§4.2 rule 3, decided: a wrong counter spends nothing: the right one then passes', async () => {
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    const counter = wrongCounter(solution.nonce)
    for (let attempt = 0; attempt < 3; attempt++) {
      assertFailedResult(
        await subject.client.verify(subject.site.siteKey, { ...solution, counter }, { from }),
      )
    }
    assertPassed(await subject.client.verify(subject.site.siteKey, solution, { from }))
  })

  test('§2.5, decided: the proof is SHA-256(nonce ++ decimal counter) with leading zero bits', async () => {
    const from = freshAddress()
    const { json } = await subject.client.challenge(subject.site.siteKey, { from })
    const solution = {
      nonce: json.nonce,
      counter: solveByTheBook(json.nonce, json.difficulty),
      fingerprintHash: freshFingerprint(),
      environment: {},
    }
    assertPassed(await subject.client.verify(subject.site.siteKey, solution, { from }))
  })

  test('§2.1 difficulty: a proof one bit short is no proof', async () => {
    const { siteKey } = await subject.createSite({ difficulty: { base: 17, min: 17, max: 28 } })
    const from = freshAddress()
    const { json } = await subject.client.challenge(siteKey, { from })
    assert.equal(json.difficulty, 17)
    const short = {
      nonce: json.nonce,
      counter: solveExactly(json.nonce, 16),
      fingerprintHash: freshFingerprint(),
    }
    assertFailedResult(await subject.client.verify(siteKey, short, { from }))
  })

  test('§2.2 solveTimeMs and environment are not required', async () => {
    const from = freshAddress()
    const { nonce, counter } = await subject.client.solved(subject.site.siteKey, { from })
    const body = { nonce, counter, fingerprintHash: freshFingerprint() }
    assertPassed(await subject.client.verify(subject.site.siteKey, body, { from }))
  })

  test('§4.2 rule 1: the call must come from the same IP that requested the challenge; otherwise 403', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const elsewhere = await subject.client.verify(siteKey, solution, { from: freshAddress() })
    assertRefused(elsewhere, 403, 'ip-mismatch')
    assertPassed(await subject.client.verify(siteKey, solution, { from }))
  })

  test('§4.2 rule 1, decided: a wrong counter from another IP is 403 too', async () => {
    const solution = await subject.client.solved(subject.site.siteKey, { from: freshAddress() })
    const counter = wrongCounter(solution.nonce)
    const answer = await subject.client.verify(
      subject.site.siteKey,
      { ...solution, counter },
      { from: freshAddress() },
    )
    assertRefused(answer, 403, 'ip-mismatch')
  })

  test('§3 fact 1: a nonce submitted after its expiry is an error, 400 "expired nonce"', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const inTime = await subject.agedSolution(siteKey, from, 110_000)
    assertPassed(await subject.client.verify(siteKey, inTime, { from }))
    const late = await subject.agedSolution(siteKey, from, 120_001)
    const answer = await subject.client.verify(siteKey, late, { from })
    assertRefused(answer, 400, 'expired-nonce')
    assert.match(answer.json.error, /nonce.*expired/i)
  })

  test('§3 fact 1: an expired nonce is 400 with a wrong counter too', async () => {
    const from = freshAddress()
    const late = await subject.agedSolution(subject.site.siteKey, from, 3_600_000)
    const body = { ...late, counter: wrongCounter(late.nonce) }
    assertRefused(await subject.client.verify(subject.site.siteKey, body, { from }), 400, 'expired-nonce')
  })

  test('§3, decided: an issue time up to 5 s ahead is tolerated, a later one is not', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const skewed = await subject.agedSolution(siteKey, from, -4000)
    assertPassed(await subject.client.verify(siteKey, skewed, { from }))
    const future = await subject.agedSolution(siteKey, from, -60_000)
    assertRefused(await subject.client.verify(siteKey, future, { from }), 400, 'invalid-nonce')
  })

  test('§7 /verify: a nonce that was already used is 400', async () => {
    const { siteKey } = subject.site
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    assertPassed(await subject.client.verify(siteKey, solution, { from }))
    assertRefused(await subject.client.verify(siteKey, solution, { from }), 400, 'nonce-used')
    const otherSignals = { ...solution, fingerprintHash: 'a'.repeat(64), solveTimeMs: 7 }
    assertRefused(await subject.client.verify(siteKey, otherSignals, { from }), 400, 'nonce-used')
  })

  test('§7 /verify: of 15 submissions of one solution at once, over two workers, one passes', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    const answers = await Promise.all(
      Array.from({ length: 15 }, () => subject.client.verify(siteKey, solution, { from })),
    )
    assert.equal(answers.filter(answer => answer.status === 200).length, 1)
    for (const answer of answers) if (answer.status !== 200) assertRefused(answer, 400, 'nonce-used')
  })

  test("§7 /verify, decided: another site's nonce is 400 and stays good for its own", async () => {
    const other = await subject.createSite()
    const from = freshAddress()
    const solution = await subject.client.solved(subject.site.siteKey, { from })
    assertRefused(await subject.client.verify(other.siteKey, solution, { from }), 400, 'invalid-nonce')
    assertPassed(await subject.client.verify(subject.site.siteKey, solution, { from }))
  })

  test('§7 /verify: a nonce that was never issued is 400, wherever one character differs', async () => {
    const { siteKey } = await subject.createSite()
    const from = freshAddress()
    const solution = await subject.client.solved(siteKey, { from })
    for (const index of [0, 7, 11, 12, 13, 15, 16, 21]) {
      const digit = (Number.parseInt(solution.nonce[index]!, 16) ^ 1).toString(16)
      const nonce = solution.nonce.slice(0, index) + digit + solution.nonce.slice(index + 1)
      const answer = await subject.client.verify(siteKey, { ...solution, nonce }, { from })
      assertRefused(answer, 400, 'invalid-nonce')
    }
    assertPassed(await subject.client.verify(siteKey, solution, { from }))
  })

  test('§2.1 difficulty: an easier one than was asked for cannot be claimed', async () => {
    const site = await subject.createSite({ difficulty: { base: 20, min: 16, max: 28 } })
    const from = freshAddress()
    const { json } = await subject.client.challenge(site.siteKey, { from })
    const easy = await subject.agedSolution(site.siteKey, from, 0)
    assert.equal(QUICK_DIFFICULTY.base, 16)
    // The header of the easy nonce under the authentication of the hard one.
    const nonce = easy.nonce.slice(0, 16) + json.nonce.slice(16)
    const answer = await subject.client.verify(site.siteKey, { ...easy, nonce }, { from })
    assertRefused(answer, 400, 'invalid-nonce')
  })
}

/** A counter whose digest has exactly this many zero bits. */
function solveExactly(nonce: string, bits: number): number {
  for (let counter = 0; ; counter++) {
    const word = createHash('sha256')
      .update(nonce + counter)
      .digest()
      .readUInt32BE(0)
    if (Math.clz32(word) === bits) return counter
  }
}
