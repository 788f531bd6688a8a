/**
 * The request operations. A request asks one shard, chosen by the visitor's network, or for a redemption by the site. In Redis each
 * key starts with `<prefix>:{<shard>}:`.
 *
 *   epoch, look, count   whether records may be lost: see lua/epoch.lua
 *   l:<address>          address log, used nonces  60 s, or until a minute after the challenges' end
 *   n:<nonce>            used nonce, only where an address may verify more than 64 times a minute
 *   e:<network>          meter of a network        5 minutes for each proof that it knows, at most a week
 *   e:<site>             of a site, in every shard the same
 *   e:born, e:born:<tag> two first proofs          six to seven days from the last one
 *   c:<address>          caller window             60 s; with a j at the end, of junk
 *   k:<api key id>       API key window            likewise
 *   r:<nonce>            redemption record         until at least a minute after the token's end
 */

import { shardKey, windowOfJunk } from '../../domain/address-tags.ts'
import { fnv1a } from '../../domain/bytes.ts'
import { isSiteKey } from '../../domain/site.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  countsProof,
  type Done,
  MARK_MARGIN_MS,
  type RedemptionAdmission,
  type RedemptionRequest,
  type RequestStore,
  type SolutionAdmission,
  type SolutionRequest,
} from '../store.ts'
import type { Settle } from './batch.ts'
import {
  challengeAnswer,
  challengeOperation,
  firstOf,
  limitedAnswer,
  peekText,
  plain,
  redemptionAnswer,
  redemptionText,
  refundText,
  solutionAnswer,
  solutionOperation,
  takeBackOperation,
} from './operations.ts'
import type { Shard } from './shard.ts'

export class ShardedRequests implements RequestStore {
  readonly #shards: readonly Shard[]
  readonly #now: () => number

  constructor(shards: readonly Shard[], now: () => number) {
    this.#shards = shards
    this.#now = now
  }

  epochOf(key: string): number | undefined {
    return this.#shardOf(key).epoch
  }

  awayMs(key: string): number {
    return this.#shardOf(key).awayMs
  }

  nonceEpoch(addressKey: string, siteKey: string): number | undefined {
    return jointEpoch(this.#shardOf(addressKey), this.#shardOf(siteKey))
  }

  nonceEpochs(siteKey: string): readonly number[] {
    if (this.#shards.length === 1) return []
    const site = this.#shardOf(siteKey)
    return this.#shards.flatMap(shard => jointEpoch(shard, site) ?? [])
  }

  formerNonceEpochs(addressKey: string, siteKey: string): readonly number[] {
    const [address, site] = [this.#shardOf(addressKey), this.#shardOf(siteKey)]
    if (address === site) return site.formerEpochs
    const all = (shard: Shard) => [...shard.formerEpochs, shard.epoch ?? 0]
    return all(address).flatMap(one => all(site).map(other => (one ^ other) >>> 0))
  }

  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void {
    const shard = this.#shardOf(request.addressKey)
    shard.enqueue(challengeOperation(shard.keyPrefix, request), (reply, at, meters) =>
      done(challengeAnswer(reply, at, meters)),
    )
  }

  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void {
    const shard = this.#shardOf(request.addressKey)
    const { spend } = request
    const keepMs = spend === undefined ? 0 : this.#keepMs(spend.expiresAtMs)
    shard.enqueue(solutionOperation(shard.keyPrefix, request, keepMs), (reply, at, meters) =>
      done(solutionAnswer(reply, at, meters)),
    )
  }

  takeBack(request: SolutionRequest, accepted: number): void {
    if (!countsProof(request)) return
    const shard = this.#shardOf(request.addressKey)
    shard.enqueue(takeBackOperation(shard.keyPrefix, request.metering!, accepted), () => {})
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

  /** Charges the caller first, and refunds it if the API key's limit refuses, or if the token turns out to be junk. */
  #redeemAcross(
    callerShard: Shard,
    siteShard: Shard,
    request: RedemptionRequest,
    apiKey: NonNullable<RedemptionRequest['apiKey']>,
    done: Done<RedemptionAdmission>,
  ): void {
    const { callerKey, callerLimit, isJunk = false } = request
    const chargeCaller = (
      junk: boolean,
      settle: (charged: RedemptionAdmission, atTime: () => number) => void,
    ) =>
      callerShard.enqueue(
        plain(
          [`${callerShard.keyPrefix}c:${windowFor(callerKey, junk)}`],
          redemptionText(callerLimit, 0, undefined, 0),
        ),
        (reply, at) => settle(redemptionAnswer(reply, at), () => firstOf(reply!, at)),
      )
    chargeCaller(isJunk, (charged, atTime) => {
      if (charged.status === 'limited') {
        const keyKeys = [`${siteShard.keyPrefix}k:${windowFor(apiKey.id, isJunk)}`]
        siteShard.enqueue(plain(keyKeys, peekText(apiKey.limit)), (peek, peekAt) => {
          const isKeyLonger = peek !== undefined && firstOf(peek, peekAt) > charged.retryAfterMs
          done(isKeyLonger ? limitedAnswer(peek, peekAt) : charged)
        })
      } else if (charged.status === 'unavailable') {
        done(charged)
      } else {
        const keys = [`${callerShard.keyPrefix}c:${windowFor(callerKey, isJunk)}`]
        const refund = plain(keys, refundText(atTime(), callerLimit))
        this.#redeemOn(siteShard, request, false, (reply, at) => {
          const answer = redemptionAnswer(reply, at)
          const isSpent =
            answer.status === 'admitted' && (answer.token === 'used' || answer.token === 'forgotten')
          // An unknown outcome stays charged: it may have run.
          if (answer.status === 'limited') callerShard.enqueue(refund, () => done(answer))
          else if (isSpent)
            callerShard.enqueue(refund, () =>
              chargeCaller(true, junk => done(junk.status === 'limited' ? junk : answer)),
            )
          else done(answer)
        })
      }
    })
  }

  #redeemOn(shard: Shard, request: RedemptionRequest, withCaller: boolean, settle: Settle): void {
    const { callerKey, callerLimit, apiKey, redeem, isJunk = false } = request
    const keys: string[] = []
    const addWindow = (kind: string, name: string) => {
      keys.push(`${shard.keyPrefix}${kind}:${windowFor(name, isJunk)}`)
      if (redeem !== undefined) keys.push(`${shard.keyPrefix}${kind}:${windowOfJunk(name)}`)
    }
    if (withCaller) addWindow('c', callerKey)
    if (apiKey !== undefined) addWindow('k', apiKey.id)
    if (redeem !== undefined) keys.push(`${shard.keyPrefix}r:${redeem.nonce}`)
    const text = redemptionText(
      withCaller ? callerLimit : 0,
      apiKey?.limit ?? 0,
      redeem,
      redeem === undefined ? 0 : this.#keepMs(redeem.expiresAtMs),
    )
    shard.enqueue(plain(keys, text), settle)
  }

  #keepMs(expiresAtMs: number): number {
    return Math.max(0, Math.ceil(expiresAtMs - this.#now())) + MARK_MARGIN_MS
  }

  #shardOf(key: string): Shard {
    const shards = this.#shards
    if (shards.length === 1) return shards[0]!
    return shards[fnv1a(isSiteKey(key) ? key : shardKey(key)) % shards.length]!
  }
}

/** Both are random, so their XOR changes with either. */
function jointEpoch(address: Shard, site: Shard): number | undefined {
  if (address === site) return site.epoch
  return address.epoch === undefined || site.epoch === undefined
    ? undefined
    : (address.epoch ^ site.epoch) >>> 0
}

function windowFor(key: string, isJunk: boolean): string {
  return isJunk ? windowOfJunk(key) : key
}
