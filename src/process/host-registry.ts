/**
 * The hosts that share a Redis. Every five seconds each host notes there that it lives, and the values that must be equal on all
 * hosts. A host with other values does not start. Values that differ after SIGHUP, and clocks that differ, are only logged.
 */

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { resolveSecrets } from '../config/secrets.ts'
import { Keyring } from '../domain/keyring.ts'
import type { Logger } from '../log/logger.ts'
import { differences, type HostNote, type HostTerms } from '../store/hosts.ts'
import { reachSites } from '../store/open.ts'
import type { SiteStore } from '../store/store.ts'
import { VERSION } from '../version.ts'
import { OperatorError } from '../words/errors.ts'

const NOTE_MS = 5000
/** An exit waits no longer for a store that is away. */
const LEAVE_MS = 500
/** Bounds the line of the log; `powgate hosts` tells all. */
const LOGGED_MAX = 10
/** Raise this number when nonces or tokens get another form, so that hosts with another number do not start. */
const FORM_OF_TOKENS = 1

export class HostRegistry {
  readonly #log: Logger
  readonly #run = { id: randomBytes(6).toString('hex'), startedAt: Date.now() }
  /** undefined before `join`, after `leave`, and always with the embedded store. */
  #joined: { readonly store: SiteStore & { close(): Promise<void> }; readonly note: HostNote } | undefined
  #reconnects = 0
  #differencesLogged = ''
  /** The hosts of the store, this one too, as of the last note. */
  living: readonly HostNote[] = []

  constructor(log: Logger) {
    this.#log = log
  }

  /** Why this host cannot work with others; a line each. */
  get differencesToOthers(): string[] {
    // Only the store's copy of this host's note has `clockAheadMs`, which is compared too.
    const own = this.living.find(({ id }) => id === this.#run.id)
    if (own === undefined) return []
    return this.living.filter(({ id }) => id !== own.id).flatMap(other => differences(own, other))
  }

  /**
   * Compares this host with the living ones, notes it, compares again, and from then on notes it every five seconds.
   *
   * @returns the configuration with the agreed number of shards
   * @throws OperatorError if a value differs
   */
  async join(config: Config): Promise<Config> {
    if (config.redis === undefined) return config
    const store = await reachSites(config)
    const { agreed, own, others, namesakes, livingNamesakes } = await compareWithHosts(store, config)
    const note = { ...this.#run, ...own }
    const problems = problemsWith([...others, ...livingNamesakes], own)
    if (problems.length === 0) {
      // Most such notes are of a killed run of this host. A living host of this name notes itself again.
      for (const { id } of namesakes) await store.noteHost(id, null)
      // Hosts that start at once may each have found nobody: whoever notes itself later finds the earlier one here.
      const { living } = await store.noteHost(note.id, note)
      const earlier = living.filter(({ id }) => id !== note.id)
      problems.push(...problemsWith(earlier, note))
    }
    if (problems.length > 0) {
      await store.noteHost(note.id, null)
      await store.close()
      throw new OperatorError(problems.join('\n'))
    }
    // A host that is refused writes no number of shards, so the first note had none.
    this.living = (await store.noteHost(note.id, note, agreed.redisShards)).living
    this.#joined = { store, note }
    setInterval(() => void this.#note(), NOTE_MS).unref()
    return agreed
  }

  /**
   * Connects again after a reload, with the number of shards that `join` returned. If the new store does not answer, the connection to the
   * present one stays.
   */
  async reconnect(config: Config): Promise<void> {
    if (this.#joined === undefined || config.redis === undefined) return
    const turn = ++this.#reconnects
    const store = await reachSites(config).catch(() => undefined)
    const before = this.#joined?.store
    // The host may have left meanwhile, or a later reload may be under way: its values count.
    if (before === undefined || turn !== this.#reconnects) return store?.close()
    this.#joined = { store: store ?? before, note: { ...this.#run, ...termsOf(config) } }
    if (store !== undefined) await before.close()
    await this.#note()
  }

  async leave(): Promise<void> {
    const store = this.#joined?.store
    this.#joined = undefined
    if (store === undefined) return
    await Promise.race([store.noteHost(this.#run.id, null).catch(() => {}), sleep(LEAVE_MS)])
    await store.close()
  }

  async #note(): Promise<void> {
    if (this.#joined === undefined) return
    const { store, note } = this.#joined
    const noted = await store.noteHost(this.#run.id, note).catch(() => undefined) // workers report a store that is away
    if (noted === undefined) return
    // A store that has lost all lacks the number too, by which a later host starts and `forget` finds keys.
    if (noted.shards === undefined)
      await store.noteHost(note.id, note, note.shared.POWGATE_REDIS_SHARDS).catch(() => {})
    this.living = noted.living
    const found = this.differencesToOthers
    const text = found.join('\n').replaceAll(/^clock: \d+ s/gm, 'clock:') // whose seconds change with each note
    if (text === this.#differencesLogged) return
    this.#differencesLogged = text
    if (found.length > 0)
      this.#log.warn(
        { differences: found.slice(0, LOGGED_MAX), count: found.length },
        'hosts of this store differ: each refuses challenges and tokens of the others',
      )
    else this.#log.info('the hosts of this store agree again')
  }
}

/**
 * Compares this host with the living ones. A note with its own name was probably left by a killed run of it. Where such a note
 * differs, this takes 6 s, in which a living host notes itself again.
 *
 * @returns the configuration with the number of shards (its own if set, else the store's), the terms of this host, and the notes of the
 * others, of its own name, and of those of its own name that were noted again
 */
export async function compareWithHosts(store: SiteStore, config: Config) {
  const { shards = config.redisShards, living } = await store.livingHosts()
  const agreed = { ...config, redisShards: config.areShardsSet ? config.redisShards : shards }
  const own = termsOf(agreed)
  const namesakes = living.filter(({ name }) => name === own.name)
  const others = living.filter(({ name }) => name !== own.name)
  const differ = namesakes.some(host => differences(own, host).length > 0)
  const livingNamesakes = differ ? await notedAgain(store, namesakes) : []
  return { agreed, own, others, namesakes, livingNamesakes }
}

/** Why a host with these terms cannot work with the others; the last line says what to do. */
export function problemsWith(others: readonly HostNote[], own: HostTerms): string[] {
  const differing = others.filter(other => differences(own, other).length > 0)
  if (differing.length === 0) return []
  return [
    ...differing.flatMap(other => differences(own, other)),
    `the hosts of one store must agree, or each refuses what the others issue: set the same, with a SIGHUP to those that run, or stop ${namesOf(differing)} first`,
  ]
}

export function namesOf(hosts: readonly HostNote[]): string {
  return [...new Set(hosts.map(({ name, version }) => `${name} (powgate ${version})`))].join(', ')
}

async function notedAgain(store: SiteStore, before: readonly HostNote[]): Promise<HostNote[]> {
  await sleep(NOTE_MS + 1000)
  const { living } = await store.livingHosts()
  return living.filter(({ id, notedAt }) => before.some(host => host.id === id && host.notedAt !== notedAt))
}

/** The keys of `shared` are printed where hosts differ. */
function termsOf(config: Config): HostTerms {
  const { signing, fingerprints } = new Keyring(resolveSecrets(config))
  return {
    name: `${hostname()}:${config.port}`,
    version: VERSION,
    workers: config.workers,
    shared: {
      POWGATE_REDIS_SHARDS: config.redisShards,
      POWGATE_CHALLENGE_SECONDS: config.challengeLifetimeMs / 1000,
      POWGATE_TOKEN_SECONDS: config.tokenLifetimeMs / 1000,
      POWGATE_IPV6_PREFIX: config.ipv6PrefixBits, // by it a visitor's nonces and limits are found
      'form of nonces and tokens': FORM_OF_TOKENS,
    },
    signs: signing.fingerprint,
    verifies: fingerprints,
  }
}
