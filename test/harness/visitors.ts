/** Visits that follow each other until they are stopped, for tests of what visitors meet meanwhile. */

export class Visitors {
  served = 0
  /** Why each other visit was refused. */
  readonly refused: string[] = []
  #isOn = true
  readonly #lanes: readonly Promise<void>[]

  /** @param visit throws if it is refused. @param lanes how many visits are under way at a time */
  constructor(visit: () => Promise<void>, lanes = 1) {
    this.#lanes = Array.from({ length: lanes }, async () => {
      while (this.#isOn) {
        await visit().then(
          () => this.served++,
          (error: Error) => this.refused.push(error.message),
        )
        await new Promise(resolve => setTimeout(resolve, 20))
      }
    })
  }

  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#lanes)
  }
}
