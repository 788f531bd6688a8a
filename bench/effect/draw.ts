/** Random draws of the simulator. Equal seeds give equal draws. */

export class Draw {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 to below 1: mulberry32, whose 32 bits are enough for the 10^6 draws of a scenario. */
  share(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(end: number): number {
    return Math.floor(this.share() * end)
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.share())
  }

  /** @param sigma of the natural logarithm */
  logNormal(median: number, sigma: number): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.share()))
    return median * Math.exp(sigma * radius * Math.cos(2 * Math.PI * this.share()))
  }

  /** One of the items, by their weights. */
  weighted<Item extends { readonly share: number }>(items: readonly Item[]): Item {
    let rest = this.share() * items.reduce((sum, { share }) => sum + share, 0)
    for (const item of items) {
      rest -= item.share
      if (rest < 0) return item
    }
    return items.at(-1)!
  }
}
