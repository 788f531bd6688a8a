/** HashWX: its interpreter, the code that it emits, and its plain JavaScript give the same hashes, those of the author's reference. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import bytes from '#hashwx'
import { checkProof } from '../../src/domain/pow.ts'
import { HashwxMachine, type MachineExports } from '../../src/protocol/hashwx-machine.ts'
import { counters, nonces, seeded } from '../harness/arbitraries.ts'

const module = new WebAssembly.Module(bytes)
const exports = new WebAssembly.Instance(module).exports as unknown as MachineExports
const machine = new HashwxMachine(exports)
/** Imported by its URL, since it has no types. */
const script: MachineExports = await import(new URL('../../dist/hashwx-script.js', import.meta.url).href)
const scriptMachine = new HashwxMachine(script)
const hex = (hash: bigint) => hash.toString(16).padStart(16, '0')

/**
 * Hashes one input, as a batch of one. `judge` looks for a hash with 65 zero bits, which no hash of 64 bits has, and leaves the last
 * one that it saw in `result`.
 *
 * @returns the hash by the interpreter, by the emitted code, and by the interpreter in plain JavaScript
 */
function hashes(seed: Uint8Array, input: bigint): string[] {
  for (const each of [machine, scriptMachine]) {
    each.seed.set(seed)
    each.make()
  }
  const run = machine.link(new WebAssembly.Module(machine.emit()))
  const ways = [
    [exports, exports.interpret],
    [exports, () => run(exports.batch.value + 80)], // up to here: the registers of one input take 80 bytes
    [script, script.interpret],
  ] as const
  return ways.map(([{ fill, judge, memory, result }, compute]) => {
    fill(Number(input >> 32n), Number(input & 0xffffffffn), 1)
    compute()
    judge(1, 65)
    return hex(new DataView(memory.buffer).getBigUint64(result.value, true))
  })
}

test('the hashes of the 100 vectors are those of the author’s reference', () => {
  const vectors = readFileSync(new URL('../vectors/hashwx.txt', import.meta.url), 'utf8')
  const lines = vectors.trim().split('\n')
  assert.equal(lines.length, 100)
  for (const line of lines) {
    const [seed, input, hash] = line.split(' ') as [string, string, string]
    assert.deepEqual(hashes(Buffer.from(seed, 'hex'), BigInt(input)), [hash, hash, hash])
  }
})

test('property: the three ways give one hash, HashWX(SHA-256(nonce ++ floor(counter / 65536)))(counter), and the check counts its zero bits', () => {
  fc.assert(
    fc.property(nonces, counters, (nonce, counter) => {
      const seed = createHash('sha256').update(`${nonce}${Math.floor(counter / 65_536)}`)
      const [hash, ...others] = hashes(seed.digest(), BigInt(counter))
      assert.deepEqual(others, [hash, hash])
      const bits = BigInt(`0x${hash}`).toString(2).padStart(64, '0').indexOf('1')
      for (const difficulty of [0, bits, bits + 1, 28])
        assert.equal(checkProof(nonce, counter, difficulty, 'hashwx'), bits >= difficulty)
    }),
    seeded(100),
  )
})
