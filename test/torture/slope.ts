/** Whether something grows: least squares over the means of stretches, whose neighbours hang together less than single samples do. */

export interface Slope {
  /** Per unit of time, and half the width of its 95 % confidence interval. */
  readonly perUnit: number
  readonly plusMinus: number
}

const STRETCHES = 20
/** Student's t for 97.5 % by degrees of freedom, from 1 on; beyond the last it changes little. */
const STUDENT = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1,
]

/** @param samples in the order of their times */
export function slopeOf(samples: readonly { readonly at: number; readonly value: number }[]): Slope {
  const stretches = Math.min(STRETCHES, Math.floor(samples.length / 3))
  if (stretches < 3) return { perUnit: 0, plusMinus: Number.POSITIVE_INFINITY }
  const means = Array.from({ length: stretches }, (_, index) => {
    const [from, to] = [index, index + 1].map(edge => Math.floor((edge * samples.length) / stretches))
    const part = samples.slice(from, to)
    return { at: mean(part.map(({ at }) => at)), value: mean(part.map(({ value }) => value)) }
  })
  const [atMean, valueMean] = [mean(means.map(({ at }) => at)), mean(means.map(({ value }) => value))]
  const spread = sum(means.map(({ at }) => (at - atMean) ** 2))
  const perUnit = sum(means.map(({ at, value }) => (at - atMean) * (value - valueMean))) / spread
  const rest = sum(means.map(({ at, value }) => (value - valueMean - perUnit * (at - atMean)) ** 2))
  const student = STUDENT[Math.min(means.length - 2, STUDENT.length) - 1]!
  return { perUnit, plusMinus: student * Math.sqrt(rest / (means.length - 2) / spread) }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]) => sum(values) / values.length
