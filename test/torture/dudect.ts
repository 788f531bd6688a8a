/**
 * Whether a function's running time distinguishes two classes of inputs, as in "dude, is my code constant time?" (Reparaz,
 * Balasch, Verbauwhede 2017). Both classes are measured in random order, and Welch's t-test compares the times. The test is
 * made with all times, and with those below each of many percentiles. The slow tail comes from the machine and hides small
 * differences. |t| above 4.5 means that the times differ.
 */

import type { Random } from './random.ts'

export interface TimingTarget<Input> {
  readonly name: string
  /** Makes an input of class 0 or 1, by the same steps for both, because the position in memory affects the time. */
  input(of: number): Input
  call(input: Input): unknown
}

export interface TimingVerdict {
  /** The largest of all percentiles' |t|. */
  readonly t: number
  /** Over the faster nine tenths: the second class's mean time a call minus the first's, in ns; then its standard error. */
  readonly differenceNs: number
  readonly errorNs: number
  /** Over the same times, the mean time of a call. */
  readonly meanNs: number
}

export const T_MAX = 4.5

/** Calls timed together: reading the clock takes as long as a short call. */
const CALLS = 8
const WARM_UP_SHARE = 0.05
/**
 * Number of inputs made before they are measured. Each is measured once. Its position in memory also affects the time, so
 * several samples of one input would not be independent.
 */
const INPUTS = 250
const PERCENTILES = 100

/** Uses the results, so that the calls are not optimised away. */
let sink: unknown

export function measureTiming<Input>(
  target: TimingTarget<Input>,
  samples: number,
  random: Random,
): TimingVerdict {
  const warmUp = Math.ceil(samples * WARM_UP_SHARE)
  const classes = Uint8Array.from({ length: samples + warmUp }, () => random.below(2))
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

export function lastResult(): unknown {
  return sink
}

function compare(times: Float64Array, classes: Uint8Array): TimingVerdict {
  const sorted = Float64Array.from(times).sort()
  const whole = welch(times, classes, Number.POSITIVE_INFINITY)
  let t = Math.abs(whole.t)
  for (let index = 1; index <= PERCENTILES; index++) {
    // The percentiles of dudect: dense where most times are.
    const share = 1 - 0.5 ** ((10 * index) / PERCENTILES)
    const { t: cropped } = welch(times, classes, sorted[Math.floor(share * sorted.length)]!)
    t = Math.max(t, Math.abs(cropped))
  }
  const typical = welch(times, classes, sorted[Math.floor(0.9 * sorted.length)]!)
  return { t, differenceNs: typical.difference, errorNs: typical.error, meanNs: typical.mean }
}

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
