/**
 * The hosts that share a Redis. Each notes every few seconds that it lives, and what it shares with the others. A host that
 * cannot work with the living ones does not start. A difference that arises later, by SIGHUP, is told at once.
 */

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { resolveSecrets } from '../config/secrets.ts'
import { differences, type HostNote } from '../domain/hosts.ts'
import { Keyring } from '../domain/keyring.ts'
import type { Logger } from '../log/logger.ts'
import { openSiteStore } from '../store/open.ts'
import { type SiteStore, StoreSetupError } from '../store/store.ts'
import { VERSION } from '../version.ts'

const NOTE_MS = 5000
/** A store that is away must not delay the end of the process. */
const LEAVE_MS = 500
/** Raised when nonces or tokens get another form. */
const FORM = 1

type Noting = Pick<SiteStore, 'noteHost'>

export class Hosts {
  readonly #log: Logger
  readonly #id = randomBytes(6).toString('hex')
  readonly #startedAt = Date.now()
  #config: Config | undefined
  #told = ''
  /** As last heard. */
  living: readonly HostNote[] = []

  constructor(log: Logger) {
    this.#log = log
  }

  /** Between this host and the living ones, one line each. */
  get differences(): string[] {
    if (this.#config === undefined) return []
    const own = this.#noteOf(this.#config)
    return this.living.filter(({ id }) => id !== own.id).flatMap(other => differences(own, other))
  }

  /**
   * @param isShardsSet whether the setting was given: without it, the store's number holds
   * @returns the configuration with the store's number of shards
   * @throws StoreSetupError if the host cannot work with the living ones
   */
  async join(config: Config, isShardsSet: boolean): Promise<Config> {
    if (config.redis === undefined) return config
    return this.#withStore(config, async store => {
      const { joined, found } = await tryJoin(store, config, isShardsSet)
      if (found.length > 0) throw new StoreSetupError(found.join('\n'))
      const noted = await store.noteHost(this.#id, this.#noteOf(joined), joined.redisShards)
      this.living = noted.living
      this.#use(joined)
      return joined
    })
  }

  /** From now on with these settings. */
  #use(config: Config): void {
    const isFirst = this.#config === undefined
    this.#config = config
    if (isFirst) void this.#keep()
  }

  /** After a roll. */
  async use(config: Config): Promise<void> {
    if (this.#config === undefined || config.redis === undefined) return
    this.#config = config
    await this.#withStore(config, store => this.#note(store)).catch(() => {})
  }

  async leave(): Promise<void> {
    const config = this.#config
    if (config === undefined) return
    this.#config = undefined
    const left = this.#withStore(config, store => store.noteHost(this.#id, null)).catch(() => {})
    await Promise.race([left, sleep(LEAVE_MS)])
  }

  async #keep(): Promise<void> {
    while (this.#config !== undefined) {
      await sleep(NOTE_MS, undefined, { ref: false })
      const config = this.#config
      // The workers say when the store is away.
      if (config !== undefined) await this.#withStore(config, store => this.#note(store)).catch(() => {})
    }
  }

  async #note(store: Noting): Promise<void> {
    if (this.#config === undefined) return
    this.living = (await store.noteHost(this.#id, this.#noteOf(this.#config))).living
    const found = this.differences
    const text = found.join('\n')
    if (text === this.#told) return
    this.#told = text
    if (found.length > 0)
      this.#log.warn({ differences: found }, 'hosts of this store differ: each refuses what the others issue')
    else this.#log.info('the hosts of this store agree again')
  }

  #noteOf(config: Config): HostNote {
    return noteOf(config, this.#id, this.#startedAt)
  }

  async #withStore<Result>(config: Config, action: (store: Noting) => Promise<Result>): Promise<Result> {
    const store = await openSiteStore(config)
    try {
      return await action(store)
    } finally {
      await store.close()
    }
  }
}

/**
 * @returns what a host with this configuration would join with: the store's number of shards, unless one is set; the living
 *   hosts besides itself, by name; and why it cannot work with them, a line each
 */
export async function tryJoin(store: Noting, config: Config, isShardsSet: boolean) {
  const { shards = config.redisShards, living } = await store.noteHost('')
  const joined = { ...config, redisShards: isShardsSet ? config.redisShards : shards }
  const own = noteOf(joined, '', 0)
  const others = living.filter(({ name }) => name !== own.name) // its own last run may have been killed
  const names = [...new Set(others.map(({ name, version }) => `${name} (powgate ${version})`))].join(', ')
  const found = others.flatMap(other => differences(own, other))
  if (found.length > 0)
    found.push(
      `the hosts of one store must agree, or each refuses what the others issue: set the same, or stop ${names} first`,
    )
  return { joined, names, found }
}

function noteOf(config: Config, id: string, startedAt: number): HostNote {
  const { signing, fingerprints } = new Keyring(resolveSecrets(config))
  return {
    id,
    name: `${hostname()}:${config.port}`,
    version: VERSION,
    startedAt,
    workers: config.workers,
    shared: {
      POWGATE_REDIS_SHARDS: config.redisShards,
      POWGATE_CHALLENGE_SECONDS: config.challengeLifetimeMs / 1000,
      POWGATE_TOKEN_SECONDS: config.tokenLifetimeMs / 1000,
      'form of nonces and tokens': FORM,
    },
    signs: signing.fingerprint,
    verifies: fingerprints,
  }
}
