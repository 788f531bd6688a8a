/** Races for tokens, each redeemed through all hosts of one Redis at once, for sites on all shards. Old tokens are tried again. */

import { fnv1a } from '../../../src/domain/bytes.ts'
import { shardTags } from '../../../src/store/client/connection.ts'
import { Client } from '../../harness/client.ts'
import { eventually } from '../../harness/eventually.ts'
import { claimsAt } from '../../harness/load/visitors.ts'
import { childPids } from '../../harness/processes.ts'
import type { Random } from '../../harness/random.ts'
import type { RedisServer } from '../../harness/redis.ts'
import { ALWAYS_EASY, type TestService } from '../../harness/service.ts'
import { Visitors } from '../../harness/visitors.ts'
import type { Call } from './history.ts'
import { type MintedClaims, tokenOf } from './redemptions.ts'
import type { Run } from './run.ts'

const SHARDS = 16
const LANES = 3 // races at the same time
/** Addresses of backends, used in turn. Each has connections of its own, and of so many every worker gets some. */
const BACKENDS = 12
const TRIED_AGAIN_MS_MAX = 120_000 // from a token's minting on
const WELL_MS = 60_000

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
  /** How many redemptions of one token race, the same number through each host. */
  readonly racers: number
}

/** The subject of a call in the history is the index of its token. */
interface Token {
  readonly text: string
  readonly site: number
  readonly mintedMs: number
}

export type RedemptionLoad = Awaited<ReturnType<typeof openRedemptionLoad>>

export async function openRedemptionLoad(run: Run, name: string, options: LoadOptions, random: Random) {
  const { topology, hosts, racers } = options
  const env = { ...options.env, POWGATE_REDIS_SHARDS: String(SHARDS), REDIS_URL: topology.url }
  const services = await Promise.all(Array.from({ length: hosts }, () => run.service('shared', env)))
  const [first] = services as [TestService]
  const sites = await Promise.all(
    Array.from({ length: options.sites }, () => first.createSite({ difficulty: ALWAYS_EASY })),
  )
  const claims: MintedClaims[] = []
  for (const site of sites) claims.push(await claimsAt(first.url, site))
  const clients = services.map(({ url }) => new Client(url))
  const history = run.history(name)
  const tokens: Token[] = []
  let oldest = 0 // index of the oldest token that is still tried
  const sitesBeingRead = new Set<number>() // by learnEpoch

  /** The hash tag in the keys of the site's shard. */
  const tagOf = (site: number): string =>
    topology.isCluster ? shardTags(topology, SHARDS)[fnv1a(sites[site]!.siteKey) % SHARDS]! : '0'

  /** Makes a token under the epoch as last read. A Redis that may have lost its memory draws another, and calls the token forgotten. */
  const mint = (site: number): number => {
    const text = tokenOf(claims[site]!, random)
    return tokens.push({ text, site, mintedMs: performance.now() }) - 1
  }
  /** Redeems the token of a subject through a host, and records what became of it. */
  const redeemAt = async (subject: number, host: number): Promise<Call> => {
    const { text: token, site } = tokens[subject]!
    const from = `127.60.0.${1 + (history.calls.length % BACKENDS)}`
    const startedMs = performance.now()
    const redeeming = clients[host]!.verifyToken(sites[site]!.apiKey, { token }, { from })
    return history.record(subject, startedMs, await redeeming.catch((error: Error) => error))
  }
  const redeemAtEach = (subject: number) => Promise.all(clients.map((_, host) => redeemAt(subject, host)))

  async function learnEpoch(site: number): Promise<void> {
    if (sitesBeingRead.has(site)) return
    sitesBeingRead.add(site)
    try {
      const tag = tagOf(site)
      const epoch = await (await topology.primaryFor(tag)).ask('get', `pg:{${tag}}:epoch`)
      if (epoch !== null) claims[site] = { ...claims[site]!, storeEpoch: Number(epoch) }
    } catch {
      // There is no primary at the moment.
    } finally {
      sitesBeingRead.delete(site)
    }
  }

  async function raceOnce(): Promise<void> {
    const site = random.below(sites.length)
    const subject = mint(site)
    const calls = await Promise.all(
      Array.from({ length: racers }, (_, racer) => redeemAt(subject, racer % hosts)),
    )
    if (calls.some(({ code }) => code === 'token-forgotten')) await learnEpoch(site)
  }

  async function retryOnce(): Promise<void> {
    const now = performance.now()
    while (oldest < tokens.length && now - tokens[oldest]!.mintedMs > TRIED_AGAIN_MS_MAX) oldest++
    if (oldest < tokens.length) await redeemAtEach(oldest + random.below(tokens.length - oldest))
  }

  const visitors = [new Visitors(raceOnce, LANES), new Visitors(retryOnce)]
  const endRaces = () => Promise.all(visitors.map(some => some.stop()))
  run.defer(endRaces)
  return {
    run,
    history,
    services,
    sites,
    tagOf,
    async stop(): Promise<void> {
      await endRaces()
      const failed = visitors.flatMap(({ refused }) => refused)
      run.none('races that failed', failed)
      for (const service of services) await service.stop()
    },
    /** The processes of every host: the primary process, then its workers. */
    pids: () => services.flatMap(processesOf),
    lastHostPids: () => processesOf(services.at(-1)!),
    tokenCount: () => tokens.length,
    /** Redemptions from `fromMs` on of tokens minted from then on that were refused as forgotten. */
    forgottenSince: (fromMs: number): Call[] =>
      history.calls.filter(
        ({ code, subject }) => code === 'token-forgotten' && tokens[subject]!.mintedMs >= fromMs,
      ),
    /** How many tokens were refused because the store may have lost its memory of them. */
    forgotten(): number {
      const refusals = history.calls.filter(({ code }) => code === 'token-forgotten')
      return new Set(refusals.map(({ subject }) => subject)).size
    },
    /** Redeems again, through every host, what was redeemed in the last second before `beforeMs`. @returns how many tokens */
    async redeemLatestAgain(beforeMs: number): Promise<number> {
      const from = history.calls.findLastIndex(({ endedMs }) => endedMs < beforeMs - 1000) + 1 // may not have reached a replica
      const latest = history.calls.slice(from)
      const done = latest.filter(({ endedMs, outcome }) => outcome === 'ok' && endedMs <= beforeMs)
      const subjects = new Set(done.map(({ subject }) => subject))
      for (const subject of subjects) await redeemAtEach(subject)
      return subjects.size
    },
    /** Waits until a new token of every site was redeemed through every host. */
    async untilWell(): Promise<void> {
      for (const site of sites.keys())
        for (const host of services.keys())
          await eventually(WELL_MS, `site ${site} is well on host ${host}`, async () => {
            const call = await redeemAt(mint(site), host)
            if (call.code === 'token-forgotten') await learnEpoch(site)
            return call.outcome === 'ok'
          })
    },
  }
}

function processesOf({ pid }: TestService): number[] {
  return [pid, ...childPids(pid)]
}
