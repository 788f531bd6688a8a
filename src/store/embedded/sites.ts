/** Operations on sites for commands, the dashboard and workers, in the store process or in a command without a service. */

import { siteMeter } from '../../domain/address-tags.ts'
import { dailyRate } from '../../domain/meters.ts'
import { namesOfAddress } from '../address-names.ts'
import { type LivingHosts, type SiteStore, StoreSetupError } from '../store.ts'
import { SitesFile } from './sites-file.ts'
import type { State } from './state.ts'

/** A socket may ask for these, by name. */
export const SITE_OPERATIONS = [
  'readSite',
  'readApiKey',
  'listSites',
  'listApiKeys',
  'commit',
  'readAudit',
  'dropAudit',
  'forget',
  'noteUses',
  'readUses',
  'noteHost',
  'livingHosts',
  'readUsualRate',
  'changesSince',
] as const satisfies readonly (keyof SiteStore)[]

export type SiteOperation = (typeof SITE_OPERATIONS)[number]

/** JSON has no Map, and no undefined. */
export interface SiteAnswer {
  readonly value?: unknown
  readonly entries?: readonly (readonly [string, number])[]
  readonly error?: string
  readonly isSetupError?: boolean
}

export class EmbeddedSites extends SitesFile implements SiteStore {
  readonly #state: State
  hasForgotten = false

  constructor(dataDir: string, state: State) {
    super(dataDir)
    this.#state = state
  }

  async forget(addressKeys: readonly string[]): Promise<number> {
    this.hasForgotten = true
    const siteKeys = (await this.changesAfter(0, Number.POSITIVE_INFINITY))
      .map(([member]) => member)
      .filter(member => member.startsWith('s/'))
      .map(member => member.slice(2))
    const { windows, meters } = this.#state
    return addressKeys
      .flatMap(key => namesOfAddress(key, siteKeys))
      .filter(name => windows.delete(name) || meters.delete(name)).length
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

  /** @param question JSON of a name and its arguments, a Map as its entries */
  async answer(question: string): Promise<string> {
    try {
      const [name, ...args] = JSON.parse(question) as [SiteOperation, ...unknown[]]
      if (!SITE_OPERATIONS.includes(name)) throw new Error(`no operation ${name}`)
      if (name === 'noteUses') args[0] = new Map(args[0] as [string, number][])
      const value = await (this[name] as (...args: unknown[]) => Promise<unknown>)(...args)
      return JSON.stringify(value instanceof Map ? { entries: [...value] } : { value })
    } catch (error) {
      const { message } = error as Error
      return JSON.stringify({ error: message, isSetupError: error instanceof StoreSetupError })
    }
  }
}
