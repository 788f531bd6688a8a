/** The contract (docs/reference/contract.md), §2.1 to §2.3, §3 and §4.2: POST /verify. Invalid bodies are in bodies.ts. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { Solution } from '../../src/protocol/wire.ts'
import { FINGERPRINT } from '../harness/client.ts'
import { assertFailedResult, assertOneOf, assertPassed, assertRefused } from './answers.ts'
import { proofBits, type Subject, wrongCounter } from './support.ts'

/** Solves as the design says it, with no code of src/: counts the zero bits of a binary string. */
function solveByTheBook(nonce: string, difficulty: number): number {
  for (let counter = 0; ; counter++) {
    const hex = createHash('sha256').update(`${nonce}${counter}`, 'utf8').digest('hex')
    const bits = BigInt(`0x${hex}`).toString(2).padStart(256, '0')
    if (bits.startsWith('0'.repeat(difficulty))) return counter
  }
}

const wrong = (solution: Solution) => ({ ...solution, counter: wrongCounter(solution.nonce) })

export function verifyTests(subject: Subject): void {
  test('§4.2 rule 3: a failed verification is 200 with passed false; decided: it spends nothing, the right counter then passes', async () => {
    const visitor = subject.visitor()
    const solution = await visitor.solved()
    for (let attempt = 0; attempt < 3; attempt++) assertFailedResult(await visitor.verify(wrong(solution)))
    assertPassed(await visitor.verify(solution))
  })

  test('§2.5, decided: the proof is SHA-256(nonce ++ decimal counter) with leading zero bits', async () => {
    const visitor = subject.visitor()
    const { nonce, difficulty } = (await visitor.challenge()).json
    const counter = solveByTheBook(nonce, difficulty)
    const solution = { nonce, counter, fingerprintHash: FINGERPRINT, environment: {} }
    assertPassed(await visitor.verify(solution))
  })

  test('§2.1 difficulty: a proof one bit short is no proof', async () => {
    const visitor = await subject.visitorOf({ difficulty: { base: 17, min: 17, max: 28 } })
    const { nonce, difficulty } = (await visitor.challenge()).json
    assert.equal(difficulty, 17)
    let counter = 0
    while (proofBits(nonce, counter) !== 16) counter++
    assertFailedResult(await visitor.verify({ nonce, counter, fingerprintHash: FINGERPRINT }))
  })

  test('§4.2 rule 1: the call must come from the same IP that requested the challenge; otherwise 403, whatever the counter', async () => {
    const visitor = subject.visitor()
    const solution = await visitor.solved()
    for (const body of [solution, wrong(solution)])
      assertRefused(await subject.visitor().verify(body), 403, 'ip-mismatch')
    assertPassed(await visitor.verify(solution))
  })

  test('§3 rule 1: a nonce submitted after its expiry is an error, 400 "expired nonce", whatever the counter', async () => {
    const visitor = subject.visitor()
    assertPassed(await visitor.verify(await visitor.agedSolution(90_000)))
    const late = await visitor.agedSolution(120_001)
    for (const body of [late, wrong(late), await visitor.agedSolution(3_600_000)]) {
      const answer = await visitor.verify(body)
      assertRefused(answer, 400, 'expired-nonce')
      assert.match(answer.json.error, /nonce.*expired/i)
    }
  })

  test('§3, decided: an issue time up to 5 s ahead is tolerated, a later one is not', async () => {
    const visitor = subject.visitor()
    assertPassed(await visitor.verify(await visitor.agedSolution(-4000)))
    const future = await visitor.agedSolution(-60_000)
    assertRefused(await visitor.verify(future), 400, 'invalid-nonce')
  })

  test('§7 /verify: of 15 submissions of one solution at once, to two workers, one passes; a nonce that was already used is 400', async () => {
    const visitor = await subject.visitorOf()
    const solution = await visitor.solved()
    const answers = await Promise.all(Array.from({ length: 15 }, () => visitor.verify(solution)))
    assertOneOf(answers, answer => assertRefused(answer, 400, 'nonce-used'))
    const changed = { ...solution, fingerprintHash: 'a'.repeat(64), solveTimeMs: 7 }
    assertRefused(await visitor.verify(changed), 400, 'nonce-used')
  })

  test("§7 /verify, decided: another site's nonce is 400 and stays good for its own", async () => {
    const visitor = subject.visitor()
    const solution = await visitor.solved()
    const elsewhere = visitor.at(await subject.createSite())
    assertRefused(await elsewhere.verify(solution), 400, 'invalid-nonce')
    assertPassed(await visitor.verify(solution))
  })
}
