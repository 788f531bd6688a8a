/**
 * The store on Redis. The keys of a request have the hash tag of one shard, chosen by the visitor's address, or for a
 * redemption by the site:
 *
 *   <prefix>:{<shard>}:epoch            random number that lasts as long as the shard's memory
 *   <prefix>:{<shard>}:look             the Redis process with that memory, and when it was last checked (lua/answers.lua)
 *   <prefix>:{<shard>}:l:<address>      address log, used nonces  60 s, or until a minute after the challenges' end
 *   <prefix>:{<shard>}:n:<nonce>        used nonce, only where an address may verify more than 64 times a minute
 *   <prefix>:{<shard>}:c:<address>      caller window             60 s
 *   <prefix>:{<shard>}:k:<api key id>   API key window            60 s
 *   <prefix>:{<shard>}:r:<nonce>        redemption record         until at least a minute after the token's end
 *
 * A single Redis (or a Sentinel's primary) has one shard, so that a redemption is one atomic operation. A Cluster has many
 * shards. There, if caller and site are on different shards, a redemption charges the caller first. If the API key's limit
 * then refuses, the caller's charge is refunded.
 */

import { describeTarget, type RedisTarget } from '../../config/redis.ts'
import { MARKS_LIMIT_MAX } from '../../domain/address-log.ts'
import { fnv1a } from '../../domain/bytes.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  type Done,
  type LoadReport,
  MARK_MARGIN_MS,
  type RedemptionAdmission,
  type RedemptionRequest,
  type SiteLoad,
  type SolutionAdmission,
  type SolutionRequest,
  type Store,
  type StoreListener,
  type StoreTrouble,
} from '../store.ts'
import { type Ask, askOver, type Connection, connect, evenlySpreadTags, withDeadline } from './connection.ts'
import { ShardHealth } from './health.ts'
import { adviceOn, checkServer, troubleOf, untilReached, versionOf } from './inspection.ts'
import {
  challengeAnswer,
  challengeOperation,
  firstOf,
  limitedAnswer,
  peekOperation,
  redemptionAnswer,
  redemptionOperation,
  refundOperation,
  solutionAnswer,
  solutionOperation,
} from './operations.ts'
import { RedisRecords } from './records.ts'
import { EXCHANGE_LOAD, runScript } from './scripts.ts'
import { Shard } from './shard.ts'
import type { Settle } from './turn.ts'

export interface RedisStoreOptions extends StoreListener {
  readonly target: RedisTarget
  readonly keyPrefix: string
  readonly deadlineMs: number
  /** On a Cluster; the same for all processes that share the data. */
  readonly clusterShards: number
  /** How long `open` tries before it gives up. */
  readonly openMs: number
  /** For tests; the server's own clock if undefined. */
  readonly clock?: () => number
}

export class RedisStore extends RedisRecords implements Store {
  readonly mayBeBridged = true
  readonly description: string
  readonly #options: RedisStoreOptions
  readonly #connection: Connection
  readonly #ask: Ask
  readonly #shards: readonly Shard[]
  readonly #health: ShardHealth

  constructor(options: RedisStoreOptions) {
    const { target, keyPrefix, deadlineMs, clock } = options
    const connection = connect(target, deadlineMs)
    super(connection, keyPrefix, deadlineMs, clock)
    this.#options = options
    this.#connection = connection
    this.#ask = askOver(connection, deadlineMs)
    this.description = describeTarget(target)
    const tags = connection.isCluster ? evenlySpreadTags(options.clusterShards) : ['0']
    this.#shards = tags.map(
      tag =>
        new Shard(connection, {
          keyPrefix: `${keyPrefix}:{${tag}}:`,
          deadlineMs,
          clock,
          onChange: () => this.#health.changed(),
          onForgotten: () => this.#health.forgot(),
          onCall: options.onCall,
        }),
    )
    this.#health = new ShardHealth(this.#shards, options)
    for (const shard of this.#shards) shard.start()
    connection.onReady(() => {
      for (const shard of this.#shards) shard.connectionReady()
    })
    connection.onLost(place => {
      for (const shard of this.#shards) shard.connectionLost(place)
    })
  }

  async open(): Promise<void> {
    await untilReached({
      ...this.#options,
      isReached: () => this.#shards.every(shard => shard.isUp),
      cause: () => this.#cause(),
    })
    await checkServer(this.#ask, this.#options.target)
  }

  /** A log line if the server may evict keys, since used nonces and redemption records can then vanish; undefined if not. */
  async evictionWarning(): Promise<string | undefined> {
    return (await this.advice()).find(line => line.includes('maxmemory-policy'))
  }

  /** What an operator should know or change, one line each. Commands that the server refuses are skipped. */
  advice(): Promise<string[]> {
    return adviceOn(this.#ask, this.#options.target.kind)
  }

  /** Milliseconds by which the server's clock is ahead of this host's; the time that the call takes makes them less exact. */
  async clockAheadMs(): Promise<number> {
    const startMs = Date.now()
    const [seconds, microseconds] = (await this.#ask('time')) as [string, string]
    const hereMs = (startMs + Date.now()) / 2
    return Number(seconds) * 1000 + Number(microseconds) / 1000 - hereMs
  }

  /** `Redis 7.0.15`, `Valkey 8.0.1`; undefined if the server does not say. */
  version(): Promise<string | undefined> {
    return versionOf(this.#ask)
  }

  override async close(): Promise<void> {
    this.#health.stop()
    for (const shard of this.#shards) shard.stop()
    await super.close()
  }

  isReady(): boolean {
    return this.#health.isReady()
  }

  trouble(): StoreTrouble | undefined {
    return this.isReady() ? undefined : troubleOf(this.#options.target, this.#cause())
  }

  #cause(): string {
    return this.#connection.lastError() ?? this.#health.cause()
  }

  /** One line for an operator: what of the store answers. */
  describeHealth(): string {
    return this.#health.describe()
  }

  addressEpoch(addressKey: string): number | undefined {
    return this.#shardOf(addressKey).epoch
  }

  siteEpoch(siteKey: string): number | undefined {
    return this.#shardOf(siteKey).epoch
  }

  nonceEpoch(addressKey: string, siteKey: string): number | undefined {
    return jointEpoch(this.#shardOf(addressKey), this.#shardOf(siteKey))
  }

  nonceEpochs(siteKey: string): readonly number[] {
    if (this.#shards.length === 1) return []
    const site = this.#shardOf(siteKey)
    return this.#shards.flatMap(shard => jointEpoch(shard, site) ?? [])
  }

  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void {
    const shard = this.#shardOf(request.addressKey)
    const keys = [`${shard.keyPrefix}l:${request.addressKey}`]
    shard.enqueue(keys, challengeOperation(request), (reply, at) => done(challengeAnswer(reply, at)))
  }

  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void {
    const shard = this.#shardOf(request.addressKey)
    const { spend } = request
    const keys = [`${shard.keyPrefix}l:${request.addressKey}`]
    if (spend !== undefined && request.addressLimit > MARKS_LIMIT_MAX)
      keys.push(`${shard.keyPrefix}n:${spend.nonce}`)
    const keepMs = spend === undefined ? 0 : this.#keepMs(spend.expiresAtMs)
    shard.enqueue(keys, solutionOperation(request, keepMs), (reply, at) => done(solutionAnswer(reply, at)))
  }

  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void {
    const callerShard = this.#shardOf(request.callerKey)
    const { apiKey } = request
    if (apiKey === undefined || this.#shardOf(apiKey.siteKey) === callerShard) {
      this.#redeemOn(callerShard, request, true, (reply, at) => done(redemptionAnswer(reply, at)))
    } else {
      this.#redeemAcross(callerShard, this.#shardOf(apiKey.siteKey), request, apiKey, done)
    }
  }

  /** Charges the caller first. Only if the caller's shard admits the request does the site's shard redeem the token. */
  #redeemAcross(
    callerShard: Shard,
    siteShard: Shard,
    request: RedemptionRequest,
    apiKey: NonNullable<RedemptionRequest['apiKey']>,
    done: Done<RedemptionAdmission>,
  ): void {
    const callerKeys = [`${callerShard.keyPrefix}c:${request.callerKey}`]
    const chargeCaller = redemptionOperation(request.callerLimit, 0, undefined, 0)
    callerShard.enqueue(callerKeys, chargeCaller, (charge, chargeAt) => {
      const charged = redemptionAnswer(charge, chargeAt)
      if (charged.status === 'limited') {
        const keyKeys = [`${siteShard.keyPrefix}k:${apiKey.id}`]
        siteShard.enqueue(keyKeys, peekOperation(apiKey.limit), (peek, peekAt) => {
          const isKeyLonger = peek !== undefined && firstOf(peek, peekAt) > charged.retryAfterMs
          done(isKeyLonger ? limitedAnswer(peek, peekAt) : charged)
        })
      } else if (charged.status === 'unavailable') {
        done(charged)
      } else {
        const refund = refundOperation(firstOf(charge!, chargeAt), request.callerLimit)
        this.#redeemOn(siteShard, request, false, (reply, at) => {
          const answer = redemptionAnswer(reply, at)
          // Refunded, so that a retry after `retryAfterMs` is admitted. (An unknown outcome stays charged: it may have run.)
          if (answer.status === 'limited') callerShard.enqueue(callerKeys, refund, () => done(answer))
          else done(answer)
        })
      }
    })
  }

  #redeemOn(shard: Shard, request: RedemptionRequest, withCaller: boolean, settle: Settle): void {
    const { apiKey, redeem } = request
    const keys: string[] = []
    if (withCaller) keys.push(`${shard.keyPrefix}c:${request.callerKey}`)
    if (apiKey !== undefined) keys.push(`${shard.keyPrefix}k:${apiKey.id}`)
    if (redeem !== undefined) keys.push(`${shard.keyPrefix}r:${redeem.nonce}`)
    const operation = redemptionOperation(
      withCaller ? request.callerLimit : 0,
      apiKey?.limit ?? 0,
      redeem,
      redeem === undefined ? 0 : this.#keepMs(redeem.expiresAtMs),
    )
    shard.enqueue(keys, operation, settle)
  }

  /** How long a used nonce or redemption record is kept: by this host's clock, with a margin for other hosts' clocks. */
  #keepMs(expiresAtMs: number): number {
    const now = this.#options.clock?.() ?? Date.now()
    return Math.max(0, Math.ceil(expiresAtMs - now)) + MARK_MARGIN_MS
  }

  async exchangeLoad(reports: readonly LoadReport[]): Promise<SiteLoad[]> {
    if (reports.length === 0) return []
    const keys = reports.map(({ siteKey }) => `${this.#options.keyPrefix}:{load}:${siteKey}`)
    const counts = reports.map(({ proofs }) => String(proofs))
    const clock = this.#options.clock === undefined ? '' : String(this.#options.clock())
    const call = runScript(this.#connection, EXCHANGE_LOAD, keys, [clock, ...counts])
    const rates = (await withDeadline(call, this.#options.deadlineMs, 'exchanging load')) as string[]
    return reports.map(({ siteKey }, index) => ({
      siteKey,
      rate: Number(rates[index * 2]),
      usualRate: Number(rates[index * 2 + 1]),
    }))
  }

  #shardOf(key: string): Shard {
    const shards = this.#shards
    return shards.length === 1 ? shards[0]! : shards[fnv1a(key) % shards.length]!
  }
}

/** Both epochs are random numbers, so their XOR changes with each of them. */
function jointEpoch(address: Shard, site: Shard): number | undefined {
  if (address === site) return site.epoch
  return address.epoch === undefined || site.epoch === undefined
    ? undefined
    : (address.epoch ^ site.epoch) >>> 0
}
