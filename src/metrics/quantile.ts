/** Quantiles of histograms, computed like Prometheus' histogram_quantile(): linear within a bucket. */

/**
 * @param bounds upper bounds of the buckets, ascending; the last bucket has none
 * @param counts of each bucket, not cumulative
 * @param share 0 to 1
 * @returns null if nothing was counted; the greatest bound if the quantile is beyond it
 */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0 || bounds.length === 0) return null
  const rank = share * total
  let below = 0
  for (const [index, upper] of bounds.entries()) {
    const count = counts[index] ?? 0
    if (count > 0 && below + count >= rank) {
      const lower = index === 0 ? Math.min(0, upper) : bounds[index - 1]!
      return lower + ((upper - lower) * (rank - below)) / count
    }
    below += count
  }
  return bounds.at(-1)!
}
