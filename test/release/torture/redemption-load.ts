/** Races of redemptions through the hosts of one Redis, for sites on all shards. Old tokens are tried again all the time. */

import { fnv1a } from '../../../src/domain/bytes.ts'
import { evenlySpreadTags } from '../../../src/store/client/connection.ts'
import { Client } from '../../harness/client.ts'
import { eventually } from '../../harness/eventually.ts'
import { childPids } from '../../harness/processes.ts'
import type { Random } from '../../harness/random.ts'
import type { RedisServer } from '../../harness/redis.ts'
import type { TestService, TestSite } from '../../harness/service.ts'
import { ALWAYS_EASY } from '../../harness/service.ts'
import { Visitors } from '../../harness/visitors.ts'
import type { Call, History } from './history.ts'
import { redeem, TokenMint } from './redemptions.ts'
import type { Run } from './run.ts'

const SHARDS = 16
const LANES = 3
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
  primaryFor(slotTag: string): Promise<Pick<RedisServer, 'ask'>>
}

interface LoadOptions {
  readonly topology: Topology
  readonly env: Readonly<Record<string, string>>
  readonly hosts: number
  readonly sites: number
  /** Redemptions of one token at once, the same number through each host. */
  readonly racers: number
}

interface Token {
  readonly text: string
  readonly site: number
  readonly mintedMs: number
}

export class RedemptionLoad {
  readonly run: Run
  readonly history: History
  readonly services: readonly TestService[]
  readonly sites: readonly TestSite[]
  readonly #options: LoadOptions
  readonly #random: Random
  readonly #clients: readonly Client[]
  readonly #mints: TokenMint[]
  readonly #tokens: Token[] = []
  /** Index of the oldest token that is still tried. */
  #oldest = 0
  readonly #learning = new Set<number>()
  readonly #visitors: readonly Visitors[]

  private constructor(
    run: Run,
    history: History,
    options: LoadOptions,
    services: readonly TestService[],
    sites: readonly TestSite[],
    mints: TokenMint[],
    random: Random,
  ) {
    this.run = run
    this.history = history
    this.#options = options
    this.services = services
    this.sites = sites
    this.#mints = mints
    this.#random = random
    this.#clients = services.map(({ url }) => new Client(url))
    this.#visitors = [new Visitors(() => this.#raceOnce(), LANES), new Visitors(() => this.#retryOnce())]
    run.defer(() => this.#end())
  }

  static async open(run: Run, name: string, options: LoadOptions, random: Random): Promise<RedemptionLoad> {
    const { topology, hosts } = options
    const env = { POWGATE_REDIS_SHARDS: String(SHARDS), ...options.env, REDIS_URL: topology.url }
    const services = await Promise.all(Array.from({ length: hosts }, () => run.service('embedded', env)))
    const [first] = services as [TestService]
    const sites = await Promise.all(
      Array.from({ length: options.sites }, () => first.createSite({ difficulty: ALWAYS_EASY })),
    )
    const mints: TokenMint[] = []
    for (const site of sites) mints.push(await TokenMint.open(first.url, site, random.fork()))
    return new RedemptionLoad(run, run.history(name), options, services, sites, mints, random)
  }

  #end(): Promise<unknown> {
    return Promise.all(this.#visitors.map(visitors => visitors.stop()))
  }

  async stop(): Promise<void> {
    await this.#end()
    const problems = this.#visitors.flatMap(({ refused }) => refused)
    this.run.none('races that failed', problems)
    for (const service of this.services) await service.stop()
  }

  /** The processes of every host: the primary process, then its workers. */
  get pids(): number[] {
    return this.services.flatMap(processesOf)
  }

  get lastHostPids(): number[] {
    return processesOf(this.services.at(-1)!)
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
    return this.#options.topology.isCluster
      ? evenlySpreadTags(SHARDS)[fnv1a(this.sites[site]!.siteKey) % SHARDS]!
      : '0'
  }

  async #raceOnce(): Promise<void> {
    const { hosts, racers } = this.#options
    const site = this.#random.below(this.sites.length)
    const subject = this.#mint(site)
    const calls = await Promise.all(
      Array.from({ length: racers }, (_, racer) => this.#redeem(subject, racer % hosts)),
    )
    if (calls.some(({ code }) => code === 'token-forgotten')) await this.#learnEpoch(site)
  }

  async #retryOnce(): Promise<void> {
    const now = performance.now()
    for (; this.#oldest < this.#tokens.length; this.#oldest++)
      if (now - this.#tokens[this.#oldest]!.mintedMs <= KEEP_MS) break
    if (this.#oldest === this.#tokens.length) return
    await this.#redeemAtEach(this.#oldest + this.#random.below(this.#tokens.length - this.#oldest))
  }

  /** Redeems again, through every host, what was redeemed in the last second before `beforeMs`. @returns how many tokens */
  async retryLatest(beforeMs: number): Promise<number> {
    const subjects = new Set<number>()
    for (let index = this.history.calls.length - 1; index >= 0; index--) {
      const { endedMs, outcome, subject } = this.history.calls[index]!
      if (endedMs < beforeMs - LATEST_MS) break
      if (outcome === 'ok' && endedMs <= beforeMs) subjects.add(subject)
    }
    for (const subject of subjects) await this.#redeemAtEach(subject)
    return subjects.size
  }

  /** Makes a token under the epoch that was last read. */
  #mint(site: number): number {
    const text = this.#mints[site]!.mint()
    return this.#tokens.push({ text, site, mintedMs: performance.now() }) - 1
  }

  #redeem(subject: number, host: number): Promise<Call> {
    const { text, site } = this.#tokens[subject]!
    return redeem(this.history, this.#clients[host]!, this.sites[site]!.apiKey, subject, text)
  }

  #redeemAtEach(subject: number): Promise<unknown> {
    return Promise.all(this.#clients.map((_, host) => this.#redeem(subject, host)))
  }

  async #learnEpoch(site: number): Promise<void> {
    if (this.#learning.has(site)) return
    this.#learning.add(site)
    try {
      const tag = this.tagOf(site)
      const epoch = await (await this.#options.topology.primaryFor(tag)).ask('get', `pg:{${tag}}:epoch`)
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
      for (let host = 0; host < this.services.length; host++)
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
