/**
 * Whether the time of a comparison of secrets shows where they differ. Each pair of inputs differs from the right value in
 * its first character, or in its last. A comparison that stops at the first difference is measured in the same way, as a
 * control.
 *
 * The test is that of "dude, is my code constant time?" (Reparaz, Balasch, Verbauwhede 2017). Both classes of inputs are
 * measured in random order, and Welch's t-test compares the faster half and the faster nine tenths of the times: the slow tail
 * comes from the machine and hides small differences. |t| above 4.5 means that the times differ. By chance that happens once in
 * some ten thousand runs, so a target fails only if three runs with other choices all exceed it.
 */

import { randomBytes } from 'node:crypto'
import { parseAddress } from '../../../../src/addresses/address.ts'
import { equalInConstantTime, Keyring } from '../../../../src/domain/keyring.ts'
import { mintNonce, NONCE_RANDOM_BITS, readNonce } from '../../../../src/domain/nonce.ts'
import { type ApiKeyRecord, apiKeySha256, isApiKeyOf, newApiKey } from '../../../../src/domain/site.ts'
import { mintToken, readToken } from '../../../../src/domain/token.ts'
import type { Random } from '../../../harness/random.ts'
import { lifetimesOf, TEST_SECRET } from '../../../harness/service.ts'
import type { TortureCase } from '../run.ts'

const SAMPLES = 1_000_000
const SAMPLES_BOUNDED = 100_000
const RUNS_MAX = 3
const T_MAX = 4.5
/** The least |t| of the control, which stops early. */
const CONTROL_T_MIN = 50

export const constantTime: TortureCase = {
  number: 13,
  name: 'constant-time',
  aim: `|t| below ${T_MAX} for each comparison of secrets (broken if three runs of a target all exceed it), far above for one that stops early`,
  fullSize: '10^6 samples for each comparison, dudect style',
  async run(run) {
    const samples = run.count(SAMPLES, SAMPLES_BOUNDED)
    const { random } = run
    run.size(`${samples.toLocaleString('en-US')} samples of 8 calls for each target`)
    const [compared, ...others] = targets(random)
    const control = absoluteTOf({ ...compared!, accepts: stopsEarly }, samples)
    run.figure('control, stops at the first difference: |t|', control)
    run.check(control > CONTROL_T_MIN, `the control has |t| ${control}: this would not find a difference`)
    for (const target of [compared!, ...others]) {
      const ts: number[] = []
      const isAnyBelow = () => ts.some(t => t < T_MAX)
      while (!isAnyBelow() && ts.length < RUNS_MAX) ts.push(absoluteTOf(target, samples))
      const told = ts.map(t => t.toFixed(2)).join(', then ')
      run.figure(`${target.name}: |t|`, told)
      run.check(isAnyBelow(), `${target.name}: |t| ${told}`)
      // Lets other tasks of this thread run (timers, signals).
      await new Promise(resolve => setImmediate(resolve))
    }
  },
}

interface TimingTarget {
  readonly name: string
  /** Makes a text of class 0 or 1 and what it is compared with, by the same steps: the position in memory affects the time. */
  input(of: number): { readonly given: string; readonly right: unknown }
  accepts(given: string, right: unknown): boolean
}

/** The first target is the comparison of texts. */
function targets(random: Random): TimingTarget[] {
  const keyring = new Keyring([TEST_SECRET])
  const bound = { lifetimes: lifetimesOf(), address: parseAddress('203.0.113.7')!, storeEpoch: 7 }
  const binding = { ...bound, siteKey: `site_${'0'.repeat(22)}` }
  const newToken = () => {
    const claims = { ...bound, siteTag: random.hex(10), score: 1, issuedAtMs: Date.now() }
    return mintToken(keyring, { ...claims, nonce: random.hex(32), counter: random.between(10_000, 99_999) })
  }
  const newNonce = () => {
    const randomBits = random.below(2 ** NONCE_RANDOM_BITS)
    return mintNonce(keyring, { issuedAtMs: Date.now(), difficulty: 18 }, binding, randomBits)
  }
  const isNonce = (given: string) =>
    readNonce(keyring, given, binding, Number.POSITIVE_INFINITY).status === 'genuine'
  /** A right text is made, and given with another character at the first or the last of these places (negative: from the end). */
  const target = <Right>(
    name: string,
    [first, last]: [number, number],
    make: () => string,
    accepts: (given: string, right: Right) => boolean,
    rightOf: (text: string) => unknown = text => text,
  ): TimingTarget => ({
    name,
    input: of => {
      const text = flat(make())
      return { given: changed(text, of === 0 ? first : last, random), right: rightOf(text) }
    },
    accepts: accepts as TimingTarget['accepts'],
  })
  return [
    target('comparison of 64 characters', [0, 63], () => random.hex(64), areEqual),
    // powgate compares the hash of an API key.
    target('API key', [KEY_START, -1], () => newApiKey(random.bytes(96)), isKeyOf, recordOf),
    target("token's HMAC", [-43, -1], newToken, given => readToken(keyring, given).status !== 'forged'), // its last part
    // src/domain/nonce.ts shows where the MACs lie: these are hexadecimal digits.
    target("nonce's site MAC", [16, 21], newNonce, isNonce),
    target("nonce's address MAC", [22, 31], newNonce, isNonce),
  ]
}

const KEY_START = 'sk_'.length + 8 + 1 // behind the id of 8 characters and a separator
const areEqual = (given: string, right: string) => equalInConstantTime(given, right, 64)
const isKeyOf = (given: string, record: ApiKeyRecord) => isApiKeyOf(record, given)
const recordOf = (key: string) => ({ secretSha256: apiKeySha256(key) })

/** The control: what a careless comparison does. */
function stopsEarly(given: string, right: unknown): boolean {
  const text = right as string
  for (let index = 0; index < text.length; index++)
    if (given.charCodeAt(index) !== text.charCodeAt(index)) return false
  return true
}

/** The text with another hexadecimal digit at one position; a negative one counts from the end. */
function changed(text: string, place: number, random: Random): string {
  const at = place < 0 ? text.length + place : place
  const digits = [...'0123456789abcdef'].filter(digit => digit !== text[at])
  return flat(text.slice(0, at) + random.pick(digits) + text.slice(at + 1))
}

/** The same representation in memory for every text, however it was made. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/** Calls timed together: reading the clock takes as long as a short call. */
const CALLS = 8
/** Inputs made before they are measured, each once: its position in memory affects the time, so samples of one would be related. */
const INPUTS = 250

function absoluteTOf({ name, input, accepts }: TimingTarget, samples: number): number {
  const warmUp = Math.ceil(samples * 0.05)
  // The classes come from a cipher: the generator of the other choices is too weak for statistics.
  const classes = Uint8Array.from(randomBytes(samples + warmUp), byte => byte & 1)
  const times = new Float64Array(samples + warmUp)
  for (let from = 0; from < times.length; from += INPUTS) {
    const to = Math.min(times.length, from + INPUTS)
    const inputs = Array.from({ length: to - from }, (_, index) => input(classes[from + index]!))
    for (let index = from; index < to; index++) {
      const { given, right } = inputs[index - from]!
      let accepted = 0 // uses the results, so that the calls are not optimised away
      const startNs = process.hrtime.bigint()
      for (let call = 0; call < CALLS; call++) if (accepts(given, right)) accepted++
      times[index] = Number(process.hrtime.bigint() - startNs) / CALLS
      if (accepted > 0) throw new Error(`${name}: a wrong value is accepted`)
    }
  }
  const measured = times.subarray(warmUp)
  const sorted = measured.toSorted()
  const below = (share: number) => sorted[Math.floor(share * sorted.length)]!
  const ts = [below(0.5), below(0.9)].map(limit => welch(measured, classes.subarray(warmUp), limit))
  return Math.max(...ts.map(Math.abs))
}

/** The t of Welch's test over the times below `limit`. */
function welch(times: Float64Array, classes: Uint8Array, limit: number): number {
  const counts = [0, 0]
  const means = [0, 0]
  const squares = [0, 0] // of the distances from the mean (Welford)
  for (let index = 0; index < times.length; index++) {
    const time = times[index]!
    if (time >= limit) continue
    const of = classes[index]!
    counts[of]!++
    const delta = time - means[of]!
    means[of]! += delta / counts[of]!
    squares[of]! += delta * (time - means[of]!)
  }
  if (Math.min(...counts) < 100) return 0 // a class that is slower as a whole has hardly any samples in the faster half
  const [first, second] = [0, 1].map(of => squares[of]! / (counts[of]! - 1) / counts[of]!)
  const error = Math.sqrt(first! + second!)
  return error === 0 ? 0 : (means[1]! - means[0]!) / error
}
