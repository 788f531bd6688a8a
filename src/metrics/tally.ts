/** Counts by name; the names come from closed lists. */
export class Tally<Name extends string> {
  readonly #counts = new Map<Name, number>()

  add(name: Name): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  snapshot(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const [name, count] of this.#counts) counts[name] = count
    return counts
  }
}
