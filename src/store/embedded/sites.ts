/** Operations on sites for commands, the dashboard and workers, in the store process or in a command without a service. */

import { siteMeter } from '../../domain/address-tags.ts'
import { dailyRate } from '../../domain/meters.ts'
import type { LivingHosts, SiteStore } from '../store.ts'
import { SitesFile } from './sites-file.ts'
import type { State } from './state.ts'

export class EmbeddedSites extends SitesFile implements SiteStore {
  readonly #state: State
  /** A command that has forgotten something must save the state. */
  hasForgotten = false

  constructor(dataDir: string, state: State) {
    super(dataDir)
    this.#state = state
  }

  async forget(addressKeys: readonly string[]): Promise<number> {
    this.hasForgotten = true
    const { windows, meters } = this.#state
    const names = (await this.namesOf(addressKeys)).flat()
    return names.filter(name => windows.delete(name) || meters.delete(name)).length
  }

  /** One host: nobody else has the socket. */
  async livingHosts(): Promise<LivingHosts> {
    return { shards: 1, living: [] }
  }

  noteHost(): Promise<LivingHosts> {
    return this.livingHosts()
  }

  async readUsualRate(siteKey: string): Promise<number | undefined> {
    const meter = this.#state.meters.get(siteMeter(siteKey))
    return dailyRate(meter === undefined ? [] : [meter], Date.now())
  }
}
