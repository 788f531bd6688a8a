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
import { mintNonce, type NonceBinding, readNonce } from '../../../../src/domain/nonce.ts'
import { type ApiKeyRecord, apiKeySha256, isApiKeyOf, newApiKey } from '../../../../src/domain/site.ts'
import { mintToken, readToken } from '../../../../src/domain/token.ts'
import type { Random } from '../../../harness/random.ts'
import { lifetimesOf, TEST_SECRET } from '../../../harness/service.ts'
import type { Run, TortureCase } from '../run.ts'

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
    const control = measureTiming(earlyExit(random), samples)
    run.figure('control, stops at the first difference: |t|', control.t)
    run.check(control.t > CONTROL_T_MIN, `the control has |t| ${control.t}: this would not find a difference`)
    for (const target of targets(random)) {
      judge(run, target, samples)
      // Lets other tasks of this thread run (timers, signals).
      await new Promise(resolve => setImmediate(resolve))
    }
    run.check(sink !== undefined, 'nothing was called')
  },
}

function judge(run: Run, target: TimingTarget<unknown>, samples: number): void {
  const all: string[] = []
  for (let runs = 0; runs < RUNS_MAX; runs++) {
    const { t, differenceNs, errorNs, meanNs } = measureTiming(target, samples)
    const times = `${differenceNs.toFixed(2)} +- ${errorNs.toFixed(2)} ns of ${meanNs.toFixed(0)}`
    all.push(`${t.toFixed(2)} (last differs - first differs: ${times})`)
    if (t < T_MAX) break
  }
  run.figure(`${target.name}: |t|`, all.join(', then '))
  const isBroken = all.length === RUNS_MAX && !(Number.parseFloat(all.at(-1)!) < T_MAX)
  run.check(!isBroken, `${target.name}: |t| ${all.join(', then ')}`)
}

function targets(random: Random): TimingTarget<unknown>[] {
  const keyring = new Keyring([TEST_SECRET])
  return [
    textsOf(random),
    apiKeys(random),
    tokens(keyring, random),
    nonces(keyring, random, 'site MAC', 16, 21),
    nonces(keyring, random, 'address MAC', 22, 31),
  ] as TimingTarget<unknown>[]
}

function earlyExit(random: Random): TimingTarget<{ given: string; right: string }> {
  const call = ({ given, right }: { given: string; right: string }) => {
    for (let index = 0; index < right.length; index++) {
      if (given.charCodeAt(index) !== right.charCodeAt(index)) return false
    }
    return true
  }
  return { ...textsOf(random), name: 'control', call }
}

function textsOf(random: Random): TimingTarget<{ given: string; right: string }> {
  return {
    name: 'comparison of 64 characters',
    input: of => {
      const right = flat(random.hex(64))
      return { given: changed(right, [0, 63][of]!, random), right }
    },
    call: ({ given, right }) => equalInConstantTime(given, right, 64),
  }
}

/** Wrong in the first character of the secret, or in its last only. The comparison is of its hash. */
function apiKeys(random: Random): TimingTarget<{ key: string; record: ApiKeyRecord }> {
  const idEnd = 'sk_'.length + 8 + 1
  return {
    name: 'API key',
    input: of => {
      const key = flat(newApiKey(random.bytes(96)))
      const record = { secretSha256: apiKeySha256(key) } as ApiKeyRecord
      return { key: changed(key, [idEnd, key.length - 1][of]!, random), record }
    },
    call: ({ key, record }) => isApiKeyOf(record, key),
  }
}

const VISITOR = parseAddress('203.0.113.7')!

function tokens(keyring: Keyring, random: Random): TimingTarget<string> {
  return {
    name: "token's HMAC",
    input: of => {
      const token = mintToken(keyring, {
        issuedAtMs: Date.now(),
        lifetimes: lifetimesOf(),
        nonce: random.hex(32),
        counter: random.between(10_000, 99_999),
        siteTag: random.hex(10),
        address: VISITOR,
        score: 1,
        storeEpoch: 7,
      })
      return changed(token, token.length - [43, 1][of]!, random)
    },
    call: token => readToken(keyring, token).status === 'forged' || fail('a wrong HMAC is genuine'),
  }
}

/** @param from the first and the last character of the MAC in the nonce */
function nonces(
  keyring: Keyring,
  random: Random,
  name: string,
  from: number,
  to: number,
): TimingTarget<string> {
  const binding: NonceBinding = {
    siteKey: `site_${'0'.repeat(22)}`,
    storeEpoch: 7,
    lifetimes: lifetimesOf(),
    address: VISITOR,
  }
  return {
    name: `nonce's ${name}`,
    input: of => {
      const terms = { issuedAtMs: Date.now(), difficulty: 18 }
      const nonce = mintNonce(keyring, terms, binding, random.below(2 ** 14))
      return changed(nonce, [from, to][of]!, random)
    },
    call: nonce =>
      readNonce(keyring, nonce, binding, Number.POSITIVE_INFINITY).status !== 'genuine' ||
      fail('a wrong MAC is genuine'),
  }
}

function fail(problem: string): never {
  throw new Error(problem)
}

/** The text with another hexadecimal digit at one position. */
function changed(text: string, at: number, random: Random): string {
  const digits = [...'0123456789abcdef'].filter(digit => digit !== text[at])
  return flat(text.slice(0, at) + random.pick(digits) + text.slice(at + 1))
}

/** The same representation in memory for every text, however it was made. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

interface TimingTarget<Input> {
  readonly name: string
  /** Makes an input of class 0 or 1, by the same steps for both, because the position in memory affects the time. */
  input(of: number): Input
  call(input: Input): unknown
}

interface TimingVerdict {
  /** The larger |t|. */
  readonly t: number
  /** Over the faster nine tenths: the second class's mean time a call minus the first's, in ns; then its standard error. */
  readonly differenceNs: number
  readonly errorNs: number
  /** Over the same times, the mean time of a call. */
  readonly meanNs: number
}

/** Calls timed together: reading the clock takes as long as a short call. */
const CALLS = 8
const WARM_UP_SHARE = 0.05
/**
 * Number of inputs made before they are measured. Each is measured once. Its position in memory also affects the time, so
 * several samples of one input would not be independent.
 */
const INPUTS = 250

/** Uses the results, so that the calls are not optimised away. */
let sink: unknown

function measureTiming<Input>(target: TimingTarget<Input>, samples: number): TimingVerdict {
  const warmUp = Math.ceil(samples * WARM_UP_SHARE)
  // The classes come from a cipher: the generator of the other choices is too weak for statistics.
  const classes = Uint8Array.from(randomBytes(samples + warmUp), byte => byte & 1)
  const times = new Float64Array(samples + warmUp)
  for (let from = 0; from < times.length; from += INPUTS) {
    const to = Math.min(times.length, from + INPUTS)
    const inputs = Array.from({ length: to - from }, (_, index) => target.input(classes[from + index]!))
    for (let index = from; index < to; index++) {
      const input = inputs[index - from]!
      const startNs = process.hrtime.bigint()
      for (let call = 0; call < CALLS; call++) sink = target.call(input)
      times[index] = Number(process.hrtime.bigint() - startNs) / CALLS
    }
  }
  return compare(times.subarray(warmUp), classes.subarray(warmUp))
}

function compare(times: Float64Array, classes: Uint8Array): TimingVerdict {
  const sorted = Float64Array.from(times).sort()
  const below = (share: number) => welch(times, classes, sorted[Math.floor(share * sorted.length)]!)
  const [half, typical] = [below(0.5), below(0.9)]
  const t = Math.max(Math.abs(half.t), Math.abs(typical.t))
  return { t, differenceNs: typical.difference, errorNs: typical.error, meanNs: typical.mean }
}

/** A class that is slower as a whole has hardly any samples in the faster half. */
const CLASS_SAMPLES_MIN = 100

/** Welch's t-test over the times below `limit`. */
function welch(times: Float64Array, classes: Uint8Array, limit: number) {
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
  const mean = (means[0]! + means[1]!) / 2
  if (Math.min(...counts) < CLASS_SAMPLES_MIN) return { t: 0, difference: 0, error: 0, mean }
  const [first, second] = [0, 1].map(of => squares[of]! / (counts[of]! - 1) / counts[of]!)
  const error = Math.sqrt(first! + second!)
  const difference = means[1]! - means[0]!
  return { t: error === 0 ? 0 : difference / error, difference, error, mean }
}
