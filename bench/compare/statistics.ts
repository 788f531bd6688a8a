/** Which of two paired series is larger, and how sure that is. */

import { spreadOf } from '../../test/harness/measure.ts'

export interface PairedRatio {
  /** Median of new/old over the pairs. */
  readonly median: number
  /** Bounds of the 95 % confidence interval; infinitely wide with fewer than two pairs. */
  readonly low: number
  readonly high: number
}

/** Student's t, two-sided 95 %, for 1, 2, 3, ... degrees of freedom. */
const T_95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
] as const

/**
 * Each new measurement against the old one beside it in time: what slows the machine for minutes befalls both, and
 * leaves their ratio alone.
 *
 * The interval is Student's t on the logarithms of the ratios. Logarithms, because 2 and 1/2 are the same distance from no
 * difference. A bootstrap would give intervals that are too narrow for five to ten pairs, because resamples never exceed the
 * range of the pairs. An outlier widens this one, so a disturbed run says that it cannot tell.
 *
 * @param olds,news as many of each, all above 0; the nth of one was measured beside the nth of the other
 */
export function pairedRatio(olds: readonly number[], news: readonly number[]): PairedRatio {
  if (olds.length !== news.length || olds.length === 0) throw new RangeError('measurements come in pairs')
  const ratios = news.map((value, index) => value / olds[index]!)
  if (!ratios.every(ratio => ratio > 0 && Number.isFinite(ratio))) {
    throw new RangeError('measurements are finite and above 0')
  }
  const { median } = spreadOf(ratios)
  const count = ratios.length
  if (count < 2) return { median, low: 0, high: Number.POSITIVE_INFINITY }
  const logs = ratios.map(Math.log)
  const mean = logs.reduce((sum, log) => sum + log, 0) / count
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (count - 1)
  const halfWidth = T_95[Math.min(count - 1, T_95.length) - 1]! * Math.sqrt(variance / count)
  return { median, low: Math.exp(mean - halfWidth), high: Math.exp(mean + halfWidth) }
}

/** A ratio of costs: above 1, the new one costs more. */
export function verdictOf({ low, high }: PairedRatio): 'faster' | 'slower' | 'no difference shown' {
  if (low > 1) return 'slower'
  return high < 1 ? 'faster' : 'no difference shown'
}

/** Slower beyond doubt, and by more than is let pass. */
export function isRegression({ median, low }: PairedRatio, threshold: number): boolean {
  return low > 1 && median > threshold
}

/** How far the interval reaches from its middle, as a share. */
export function reachOf({ low, high }: PairedRatio): number {
  return Math.sqrt(high / low) - 1
}
