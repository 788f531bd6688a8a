/** Races of redemptions through two hosts with one Redis, for sites on all shards. Old tokens are tried again all the time. */

import { fnv1a } from '../../../src/domain/bytes.ts'
import { evenlySpreadTags } from '../../../src/store/client/connection.ts'
import { eventually } from '../../harness/eventually.ts'
import { childPids } from '../../harness/processes.ts'
import type { Random } from '../../harness/random.ts'
import type { RedisServer } from '../../harness/redis.ts'
import { type TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../../harness/service.ts'
import { Visitors } from '../../harness/visitors.ts'
import type { Call, History } from './history.ts'
import { attempt, EASY, TokenMint } from './redemptions.ts'
import type { Run } from './run.ts'
import { Pool } from './wire.ts'

const HOSTS = 2
const SITES = 6
const SITES_BOUNDED = 3
const SHARDS = 16
const LANES = 3
/** Redemptions of one token at once, half of them through each host. */
const RACERS = 8
const CONNECTIONS = 24
/** Tokens older than this are not tried again. */
const KEEP_MS = 120_000
/** A redemption so shortly before a failover may not have reached a replica. */
const LATEST_MS = 1000
const WELL_MS = 60_000

/** What the load needs to know about the servers. */
export interface Topology {
  readonly url: string
  readonly isCluster: boolean
  /** The current primary of the site's shard, as far as known; rejects if there is none. */
  primaryFor(slotTag: string): Promise<RedisServer>
}

interface Token {
  readonly text: string
  readonly site: number
  readonly mintedMs: number
  attempts: number
}

interface FailoverParts {
  readonly topology: Topology
  readonly services: readonly TestService[]
  readonly sites: readonly TestSite[]
  readonly mints: TokenMint[]
  readonly random: Random
}

export class FailoverLoad {
  readonly run: Run
  readonly history: History
  readonly sites: readonly TestSite[]
  readonly #services: readonly TestService[]
  readonly #topology: Topology
  readonly #random: Random
  readonly #pools: readonly Pool[]
  readonly #mints: TokenMint[]
  readonly #tokens: Token[] = []
  /** Index of the oldest token that is still tried. */
  #oldest = 0
  readonly #learning = new Set<number>()
  readonly #visitors: readonly Visitors[]

  private constructor(run: Run, name: string, { topology, services, sites, mints, random }: FailoverParts) {
    this.run = run
    this.history = run.history(`failover-${name}`)
    this.#topology = topology
    this.#services = services
    this.sites = sites
    this.#mints = mints
    this.#random = random
    this.#pools = services.map(({ port }) => new Pool({ port, connections: CONNECTIONS, timeoutMs: 15_000 }))
    this.#visitors = [new Visitors(() => this.#raceOnce(), LANES), new Visitors(() => this.#retryOnce())]
    run.defer(() => this.#end())
  }

  static async open(run: Run, name: string, topology: Topology, random: Random): Promise<FailoverLoad> {
    const settings = { POWGATE_REDIS_SHARDS: String(SHARDS), POWGATE_STORE_DEADLINE_MS: '1000' }
    const env = { ...UNLIMITED_REDEMPTIONS, ...settings, REDIS_URL: topology.url }
    const services = await Promise.all(Array.from({ length: HOSTS }, () => run.service('embedded', env)))
    const [first] = services
    const count = run.count(SITES, SITES_BOUNDED)
    const sites = await Promise.all(
      Array.from({ length: count }, () => first!.createSite({ difficulty: EASY })),
    )
    const mints: TokenMint[] = []
    for (const site of sites) mints.push(await TokenMint.open(first!.url, site, random.fork()))
    return new FailoverLoad(run, name, { topology, services, sites, mints, random })
  }

  async #end(): Promise<void> {
    await Promise.all(this.#visitors.map(visitors => visitors.stop()))
    for (const pool of this.#pools) pool.close()
  }

  async stop(): Promise<void> {
    await this.#end()
    const problems = this.#visitors.flatMap(({ refused }) => refused)
    this.run.none('races that failed', problems)
    for (const service of this.#services) await service.stop()
  }

  /** The processes of every host: the primary process, then its workers. */
  get pids(): number[] {
    return this.#services.flatMap(processesOf)
  }

  get lastHostPids(): number[] {
    return processesOf(this.#services.at(-1)!)
  }

  get tokenCount(): number {
    return this.#tokens.length
  }

  /** Redemptions from `fromMs` on of tokens minted from then on that were refused as forgotten. */
  forgottenSince(fromMs: number): Call[] {
    return this.history.calls.filter(
      ({ code, subject }) => code === 'token-forgotten' && this.#tokens[subject]!.mintedMs >= fromMs,
    )
  }

  /** How many tokens were refused because the store may have lost its memory of them. */
  get forgotten(): number {
    const codes = this.history.calls.filter(({ code }) => code === 'token-forgotten')
    return new Set(codes.map(({ subject }) => subject)).size
  }

  tagOf(site: number): string {
    return this.#topology.isCluster
      ? evenlySpreadTags(SHARDS)[fnv1a(this.sites[site]!.siteKey) % SHARDS]!
      : '0'
  }

  async #raceOnce(): Promise<void> {
    const site = this.#random.below(this.sites.length)
    const subject = this.#mint(site)
    const calls = await Promise.all(
      Array.from({ length: RACERS }, (_, racer) => this.#redeem(subject, racer % HOSTS)),
    )
    if (calls.some(({ code }) => code === 'token-forgotten')) await this.#learnEpoch(site)
  }

  async #retryOnce(): Promise<void> {
    const now = performance.now()
    for (; this.#oldest < this.#tokens.length; this.#oldest++)
      if (now - this.#tokens[this.#oldest]!.mintedMs <= KEEP_MS) break
    if (this.#oldest === this.#tokens.length) return
    const subject = this.#oldest + this.#random.below(this.#tokens.length - this.#oldest)
    await Promise.all(this.#pools.map((_, host) => this.#redeem(subject, host)))
  }

  /** Redeems again, through every host, what was redeemed in the last second before `beforeMs`. @returns how many tokens */
  async retryLatest(beforeMs: number): Promise<number> {
    const subjects = new Set<number>()
    for (let index = this.history.calls.length - 1; index >= 0; index--) {
      const { endedMs, outcome, subject } = this.history.calls[index]!
      if (endedMs < beforeMs - LATEST_MS) break
      if (outcome === 'ok' && endedMs <= beforeMs) subjects.add(subject)
    }
    for (const subject of subjects)
      await Promise.all(this.#pools.map((_, host) => this.#redeem(subject, host)))
    return subjects.size
  }

  /** Makes a token under the epoch that was last read. */
  #mint(site: number): number {
    const text = this.#mints[site]!.mint()
    return this.#tokens.push({ text, site, mintedMs: performance.now(), attempts: 0 }) - 1
  }

  #redeem(subject: number, host: number): Promise<Call> {
    const token = this.#tokens[subject]!
    const race = { pool: this.#pools[host]!, site: this.sites[token.site]!, history: this.history }
    return attempt(race, subject, token.text, token.attempts++)
  }

  async #learnEpoch(site: number): Promise<void> {
    if (this.#learning.has(site)) return
    this.#learning.add(site)
    try {
      const tag = this.tagOf(site)
      const epoch = await (await this.#topology.primaryFor(tag)).ask('get', `pg:{${tag}}:epoch`)
      if (epoch !== null) this.#mints[site] = this.#mints[site]!.under(Number(epoch))
    } catch {
      // There is no primary at the moment.
    } finally {
      this.#learning.delete(site)
    }
  }

  /** Waits until a new token of every site was redeemed through every host. */
  async untilWell(): Promise<void> {
    for (let site = 0; site < this.sites.length; site++)
      for (let host = 0; host < HOSTS; host++)
        await eventually(WELL_MS, `site ${site} is well on host ${host}`, async () => {
          const call = await this.#redeem(this.#mint(site), host)
          if (call.code === 'token-forgotten') await this.#learnEpoch(site)
          return call.outcome === 'ok'
        })
  }
}

function processesOf({ pid }: TestService): number[] {
  return [pid, ...childPids(pid)]
}
