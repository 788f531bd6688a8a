/** HashWX: interpreter, emitted code and their plain JavaScript against published vectors and a slow implementation; its proofs. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import bytes from '#hashwx'
import { checkProof } from '../../src/domain/pow.ts'
import { BATCH, HashwxMachine, type MachineExports } from '../../src/protocol/hashwx-machine.ts'
import { seedInput } from '../../src/protocol/proof.ts'
import { counters, nonces, seeded } from '../harness/arbitraries.ts'
import { HASHWX_VECTORS, slowHashwx } from '../harness/hashwx.ts'

const module = new WebAssembly.Module(bytes)
const exports = new WebAssembly.Instance(module).exports as unknown as MachineExports
const machine = new HashwxMachine(exports)
/** By its address, since it has no types. */
const script: MachineExports = await import(new URL('../../dist/hashwx-script.js', import.meta.url).href)
const scriptMachine = new HashwxMachine(script)
const hex = (hash: bigint) => hash.toString(16).padStart(16, '0')

/** By the interpreter, by the emitted code, and by the interpreter in plain JavaScript. */
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

test('of 100,000 random counters none has 28 zero bits by chance, and as many as expected have 12', () => {
  const nonce = '0123456789abcdef'.repeat(2)
  let most = 0
  for (let index = 1; index <= 100_000; index++) {
    const counter = (index * 0x9e3779b97f4a7) % 2 ** 53
    assert.equal(checkProof(nonce, counter, 28, 'hashwx'), false)
    if (checkProof(nonce, counter, 12, 'hashwx')) most++
  }
  assert.ok(most > 5 && most < 60, `${most} of 24 by chance have 12 bits`)
})

test('a search finds what the check accepts, in any batch and across the ends of functions', () => {
  const nonce = 'f'.repeat(32)
  for (const first of [0, 65_536 - 100, 1e15, Number.MAX_SAFE_INTEGER - 2000]) {
    for (let start = first, end = first + 1500; start < end; ) {
      const count = Math.min(BATCH, end - start, 65_536 - (start % 65_536))
      machine.seed.set(seedOf(nonce, start))
      machine.make()
      const run = machine.link(new WebAssembly.Module(machine.emit()))
      const found = machine.search(run, start, count, 6)
      const expected = Array.from({ length: count }, (_, index) => start + index).find(counter =>
        checkProof(nonce, counter, 6, 'hashwx'),
      )
      assert.equal(found, expected ?? -1)
      start += count
    }
  }
})
