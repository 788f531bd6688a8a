/** A queue, first in, first out; its operations take the same time at any length. */
export class Fifo<Item> {
  #items: Item[] = []
  #head = 0

  add(item: Item): void {
    this.#items.push(item)
  }

  take(): Item | undefined {
    if (this.#head === this.#items.length) return undefined
    const item = this.#items[this.#head++]
    if (this.#head > 10_000) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }
}
