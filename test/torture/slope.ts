/**
 * Whether values grow: least squares over the means of stretches. Neighbouring stretches often deviate in the same direction
 * (a heap fills for minutes until it is collected). So fewer of them are independent than there are: see Santer et al.,
 * Statistical significance of trends (2000), "adjusted standard error and degrees of freedom".
 */

export interface Slope {
  /** Growth per unit of time; then half the width of its 95 % confidence interval. */
  readonly perUnit: number
  readonly plusMinus: number
  /** The same if all stretches were independent: the uncertainty of the line through them, not of the growth. */
  readonly plusMinusOfLine: number
}

const STRETCHES = 20
const UNKNOWN = Number.POSITIVE_INFINITY
/** Student's t for 97.5 % by degrees of freedom, from 1 on; beyond the last it changes little. */
const STUDENT = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1,
]

/** @param samples in the order of their times */
export function slopeOf(samples: readonly { readonly at: number; readonly value: number }[]): Slope {
  const stretches = Math.min(STRETCHES, Math.floor(samples.length / 3))
  if (stretches < 3) return { perUnit: 0, plusMinus: UNKNOWN, plusMinusOfLine: UNKNOWN }
  const means = Array.from({ length: stretches }, (_, index) => {
    const [from, to] = [index, index + 1].map(edge => Math.floor((edge * samples.length) / stretches))
    const part = samples.slice(from, to)
    return { at: mean(part.map(({ at }) => at)), value: mean(part.map(({ value }) => value)) }
  })
  const [atMean, valueMean] = [mean(means.map(({ at }) => at)), mean(means.map(({ value }) => value))]
  const spread = sum(means.map(({ at }) => (at - atMean) ** 2))
  const perUnit = sum(means.map(({ at, value }) => (at - atMean) * (value - valueMean))) / spread
  const residues = means.map(({ at, value }) => value - valueMean - perUnit * (at - atMean))
  const rest = sum(residues.map(residue => residue ** 2))
  const halfWidth = (independent: number) => {
    const freedom = independent - 2
    if (freedom < 1) return UNKNOWN
    const student = STUDENT[Math.min(Math.floor(freedom), STUDENT.length) - 1]!
    return student * Math.sqrt(rest / freedom / spread)
  }
  return {
    perUnit,
    plusMinus: halfWidth(independentOf(residues, rest)),
    plusMinusOfLine: halfWidth(stretches),
  }
}

/** The number of independent stretches that would be worth as much as these. */
function independentOf(residues: readonly number[], rest: number): number {
  const products = residues.slice(1).map((residue, index) => residue * residues[index]!)
  const correlation = rest === 0 ? 0 : Math.max(0, sum(products) / rest)
  return (residues.length * (1 - correlation)) / (1 + correlation)
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]) => sum(values) / values.length
