/** The proof of SHA-256: what a solver hashes, and which counters the check accepts. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProof, isCounter } from '../../src/domain/pow.ts'
import { COUNTER_MAX, PROOF_INPUT_MAX, proofInput } from '../../src/protocol/proof.ts'
import { counters, nonces, seeded } from '../harness/arbitraries.ts'

type ProofVector = { nonce: string; counter: number; digest: string; zeroBits: number }
/** `first` is what a solver finds that tries counters in order, from 0. */
const golden: { vectors: ProofVector[]; first: ProofVector[] } = JSON.parse(
  readFileSync(new URL('../vectors/proof.json', import.meta.url), 'utf8'),
)

test('golden vectors: layout, digest and number of zero bits, up to which the check accepts', () => {
  for (const { nonce, counter, digest, zeroBits } of [...golden.vectors, ...golden.first]) {
    assert.equal(createHash('sha256').update(proofInput(nonce, counter)).digest('hex'), digest)
    for (let difficulty = 0; difficulty <= 32; difficulty++)
      assert.equal(checkProof(nonce, counter, difficulty), difficulty <= zeroBits, `${nonce} ${difficulty}`)
  }
})

test('property: the check equals plain createHash for any nonce, counter and difficulty', () => {
  fc.assert(
    fc.property(nonces, counters, fc.integer({ min: 0, max: 32 }), (nonce, counter, difficulty) => {
      const digest = createHash('sha256').update(`${nonce}${counter}`).digest()
      assert.ok(proofInput(nonce, counter).length <= PROOF_INPUT_MAX, 'one block of SHA-256')
      assert.equal(checkProof(nonce, counter, difficulty), Math.clz32(digest.readUInt32BE(0)) >= difficulty)
    }),
    seeded(20_000),
  )
})

test('a counter that is no safe integer is refused, even at difficulty 0', () => {
  const nonce = '0'.repeat(32)
  for (const counter of [-1, -0, 0.5, Number.NaN, Number.POSITIVE_INFINITY, COUNTER_MAX + 1, 1e300])
    assert.ok(!isCounter(counter) && !checkProof(nonce, counter, 0), String(counter))
  for (const counter of [0, 1, COUNTER_MAX]) assert.equal(checkProof(nonce, counter, 0), true)
})

test('a nonce that is not 32 characters long is refused', () => {
  for (const length of [31, 33]) assert.equal(checkProof('0'.repeat(length), 0, 0), false)
})
