/** Measured times, and their summary. */

export interface Latencies {
  readonly count: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export class Samples {
  readonly #keeps: boolean
  readonly #ms: number[] = []
  #count = 0

  /** @param keeps if false, times are only counted */
  constructor(keeps = true) {
    this.#keeps = keeps
  }

  add(ms: number): void {
    this.#count++
    if (this.#keeps) this.#ms.push(ms)
  }

  latencies(): Latencies {
    const sorted = Float64Array.from(this.#ms).sort()
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
    return { count: this.#count, p50Ms: at(0.5), p99Ms: at(0.99) }
  }
}
