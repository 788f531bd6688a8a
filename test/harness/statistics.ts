/** Summarises a figure that was measured several times. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** @param values at least one */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new RangeError('a spread needs at least one value')
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[sorted.length >> 1]!
  const lower = sorted[(sorted.length - 1) >> 1]!
  return { median: (lower + upper) / 2, min: sorted[0]!, max: sorted.at(-1)! }
}
