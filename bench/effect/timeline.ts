/** The virtual clock: what is due happens in order of time, then of arrangement. Nothing waits for real time. */

interface Due {
  readonly atMs: number
  readonly order: number
  readonly action: () => void
}

export class Timeline {
  /** Since the start of the scenario. */
  nowMs = 0
  #order = 0
  /** A binary heap, the earliest first. */
  readonly #heap: Due[] = []

  at(atMs: number, action: () => void): void {
    const heap = this.#heap
    heap.push({ atMs: Math.max(atMs, this.nowMs), order: this.#order++, action })
    for (let index = heap.length - 1; index > 0; ) {
      const parent = (index - 1) >> 1
      if (!isBefore(heap[index]!, heap[parent]!)) break
      this.#swap(index, parent)
      index = parent
    }
  }

  after(ms: number, action: () => void): void {
    this.at(this.nowMs + ms, action)
  }

  /** Lets everything happen that is due before this time. */
  runUntil(endMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.atMs < endMs; first = this.#heap[0]) {
      this.#removeFirst()
      this.nowMs = first.atMs
      first.action()
    }
    this.nowMs = endMs
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    heap[0] = last
    for (let index = 0; ; ) {
      const left = 2 * index + 1
      if (left >= heap.length) return
      const right = left + 1
      const child = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left
      if (!isBefore(heap[child]!, heap[index]!)) return
      this.#swap(child, index)
      index = child
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    const held = heap[a]!
    heap[a] = heap[b]!
    heap[b] = held
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
