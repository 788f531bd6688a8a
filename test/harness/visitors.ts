/** Visits that follow each other until they are stopped. */

const PAUSE_MS = 20

export class Visitors {
  served = 0
  /** Why others were not. */
  readonly refused: string[] = []
  #isOn = true
  readonly #lanes: readonly Promise<void>[]

  /**
   * @param visit throws if it is refused
   * @param isExcused whether a refused visit that began then counts as neither
   */
  constructor(visit: () => Promise<void>, lanes = 1, isExcused = (_startedAtMs: number) => false) {
    this.#lanes = Array.from({ length: lanes }, () => this.#come(visit, isExcused))
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#lanes)
  }

  async #come(visit: () => Promise<void>, isExcused: (startedAtMs: number) => boolean): Promise<void> {
    while (this.#isOn) {
      const startedAtMs = performance.now()
      await visit().then(
        () => this.served++,
        error => isExcused(startedAtMs) || this.refused.push((error as Error).message),
      )
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }
}
