/** Operations on sites for commands, the dashboard and workers, in the store process or in a command without a service. */

import { siteMeter } from '../../domain/address-tags.ts'
import { dailyRate } from '../../domain/meters.ts'
import { namesOfAddress } from '../address-names.ts'
import { type LivingHosts, type SiteStore, StoreSetupError } from '../store.ts'
import { SitesFile } from './sites-file.ts'
import type { State } from './state.ts'

/** A socket may ask for all operations of a SiteStore, by name. */
const OPERATIONS: Readonly<Record<keyof SiteStore, true>> = {
  readSite: true,
  readApiKey: true,
  listSites: true,
  listApiKeys: true,
  commit: true,
  readAudit: true,
  dropAudit: true,
  forget: true,
  noteUses: true,
  readUses: true,
  noteHost: true,
  livingHosts: true,
  readUsualRate: true,
  changesSince: true,
}
export type SiteOperation = keyof SiteStore
export const SITE_OPERATIONS = Object.keys(OPERATIONS) as SiteOperation[]

/** What an operation answered, as JSON; without a value it was undefined. */
export interface SiteAnswer {
  readonly value?: unknown
  readonly error?: string
  readonly isSetupError?: boolean
}

/** JSON has no Map: it becomes an object with the entries. Arguments that are undefined become null. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => (part instanceof Map ? { $map: [...part] } : part))
}

export function fromJson(text: string): unknown {
  return JSON.parse(text, (_, part) => (part?.$map === undefined ? part : new Map(part.$map)))
}

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

  /** @param question JSON of a name and its arguments @returns JSON of a SiteAnswer */
  async answer(question: string): Promise<string> {
    try {
      const [name, ...args] = fromJson(question) as [SiteOperation, ...unknown[]]
      if (!SITE_OPERATIONS.includes(name)) throw new Error(`no operation ${name}`)
      return toJson({ value: await (this[name] as (...args: unknown[]) => Promise<unknown>)(...args) })
    } catch (error) {
      const { message } = error as Error
      return JSON.stringify({ error: message, isSetupError: error instanceof StoreSetupError })
    }
  }
}
