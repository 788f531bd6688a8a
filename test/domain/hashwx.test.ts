/** HashWX: interpreter, emitted code and their plain JavaScript against published vectors and a slow implementation; its proofs. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import bytes from '#hashwx'
import { checkProof } from '../../src/domain/pow.ts'
import { HashwxMachine, type MachineExports } from '../../src/protocol/hashwx-machine.ts'
import { seedInput } from '../../src/protocol/proof.ts'
import { counters, nonces, seeded } from '../harness/arbitraries.ts'
import { HASHWX_VECTORS, slowHashwx } from '../harness/hashwx.ts'

const module = new WebAssembly.Module(bytes)
const exports = new WebAssembly.Instance(module).exports as unknown as MachineExports
const machine = new HashwxMachine(exports)
/** Imported by its URL, since it has no types. */
const script: MachineExports = await import(new URL('../../dist/hashwx-script.js', import.meta.url).href)
const scriptMachine = new HashwxMachine(script)
const hex = (hash: bigint) => hash.toString(16).padStart(16, '0')

/** @returns the hash by the interpreter, by the emitted code, and by the interpreter in plain JavaScript */
function hashes(seed: Uint8Array, input: bigint): string[] {
  for (const each of [machine, scriptMachine]) {
    each.seed.set(seed)
    each.make()
  }
  const run = machine.link(new WebAssembly.Module(machine.emit()))
  const ways = [
    [exports, exports.interpret],
    [exports, () => run(exports.batch.value + 80)],
    [script, script.interpret],
  ] as const
  return ways.map(([{ fill, judge, memory, result }, compute]) => {
    fill(Number(input >> 32n), Number(input & 0xffffffffn), 1)
    compute()
    judge(1, 65)
    return hex(new DataView(memory.buffer).getBigUint64(result.value, true))
  })
}

test('the 100 vectors of the reference: the slow implementation, the interpreter, the emitted code, plain JavaScript', () => {
  assert.equal(HASHWX_VECTORS.length, 100)
  for (const { seed, input, hash } of HASHWX_VECTORS)
    assert.deepEqual([hex(slowHashwx(seed, input)), ...hashes(seed, input)], [hash, hash, hash, hash])
})

test('property: any seed and input hash as in the slow implementation', () => {
  const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 })
  fc.assert(
    fc.property(seeds, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (seed, input) => {
      const expected = hex(slowHashwx(seed, input))
      assert.deepEqual(hashes(seed, input), [expected, expected, expected])
    }),
    seeded(500),
  )
})

const seedOf = (nonce: string, counter: number) =>
  createHash('sha256').update(seedInput(nonce, counter)).digest()

test('property: the check counts the zero bits of the hash of a counter under its seed', () => {
  fc.assert(
    fc.property(nonces, counters, (nonce, counter) => {
      const hash = slowHashwx(seedOf(nonce, counter), BigInt(counter))
      const bits = 64 - (hash === 0n ? 0 : hash.toString(2).length)
      for (const difficulty of [0, bits, bits + 1, 28])
        assert.equal(checkProof(nonce, counter, difficulty, 'hashwx'), bits >= difficulty)
    }),
    seeded(500),
  )
})
