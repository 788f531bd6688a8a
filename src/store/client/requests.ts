/**
 * The request operations: encodes each one for a batch, sends it to a shard, and decodes the answer. An operation starts with a
 * letter. Its file in ../redis/lua/ has its fields and answers in the header. The `first` and `second` of an answer are:
 *
 *   C  visits/admit-challenge-1      siteCount | accepted 2, failures 2      R  redemptions/redeem-token-3    time of charge | 0
 *   V  visits/admit-solution-2       failures | accepted                     K  redemptions/peek-api-key-1    as if refused
 *   T  visits/take-back-0            0 | 0                                   F  redemptions/refund-caller-1   0 | 0
 *      any that a limit refused      retryAfterMs | policy
 *
 * The network of an address chooses the shard of its records. The site chooses that of its API keys' windows and its redemption
 * records, so a redemption may need two shards. In Redis each key starts with `<prefix>:{<shard>}:`.
 *
 *   epoch, look, count   KEYS[1] to [3] of lua/epoch.lua, by which it notices that records may be lost
 *   l:<address>          address log, used nonces  60 s; with a used nonce 5 minutes, or a minute beyond its challenge's end
 *   n:<nonce>            used nonce, only where an address may verify more than 64 times a minute
 *   e:<network>          meter of a network        5 minutes for each proof that it knows, at most a week
 *   e:<site>             meter of a site           likewise; each shard has one of its own
 *   e:born, e:born:<tag> time of a first proof (`AddressTags.firstProofNames`); six to seven days from the last proof
 *   c:<address>          window of a caller        60 s; with a j at the end, the window of its junk (`isJunk`)
 *   k:<api key id>       window of an API key      likewise
 *   r:<nonce>            redemption record         until at least a minute after the token's end
 */

import { MARK_BIT, MARK_LOW_RANGE, MARKS_LIMIT_MAX, verificationKind } from '../../domain/address-log.ts'
import { windowOfJunk } from '../../domain/address-tags.ts'
import { readUInt24 } from '../../domain/bytes.ts'
import type { Limited } from '../../domain/limits.ts'
import { fadeAll, type Meter, type Meters, metersFrom } from '../../domain/meters.ts'
import { nonceMark } from '../../domain/nonce.ts'
import { PRICING } from '../../domain/pricing.ts'
import {
  type ChallengeAdmission,
  type ChallengeRequest,
  countsProof,
  type Done,
  MARK_MARGIN_MS,
  type Metering,
  NONCE_OUTCOMES,
  type RedemptionAdmission,
  type RedemptionRequest,
  type RequestStore,
  type SolutionAdmission,
  type SolutionRequest,
  TOKEN_OUTCOMES,
  UNAVAILABLE,
} from '../store.ts'
import {
  DONE,
  FIRST_AT,
  JUNK,
  LIMITED,
  POLICIES,
  SECOND_AT,
  uint16Text,
  uint24Text,
  uint32Text,
} from '../wire.ts'
import { type Operation, timeOf } from './batch.ts'
import { shardIndex } from './connection.ts'
import type { Shard } from './shard.ts'

export class ShardedRequests implements RequestStore {
  readonly #shards: readonly Shard[]
  readonly #now: () => number

  constructor(shards: readonly Shard[], now: () => number) {
    this.#shards = shards
    this.#now = now
  }

  stop(): void {
    for (const shard of this.#shards) shard.stop()
  }

  epochOf(key: string): number | undefined {
    return this.#shardOf(key).epoch
  }

  awayMs(key: string): number {
    return this.#shardOf(key).awayMs
  }

  /** A shard that is away counts with its last epoch; whether that will do is for the bridge (bridge.ts), or the admission, to decide. */
  nonceEpoch(addressKey: string, siteKey: string): number | undefined {
    return jointEpoch(this.#shardOf(addressKey), this.#shardOf(siteKey))
  }

  nonceEpochs(siteKey: string): readonly number[] {
    if (this.#shards.length === 1) return [] // that of all addresses is the one that `nonceEpoch` gives
    const site = this.#shardOf(siteKey)
    return this.#shards.flatMap(shard => jointEpoch(shard, site) ?? [])
  }

  formerNonceEpochs(addressKey: string, siteKey: string): readonly number[] {
    const [address, site] = [this.#shardOf(addressKey), this.#shardOf(siteKey)]
    if (address === site) return site.formerEpochs
    // When one shard got a new epoch, the other may have kept its own. So every epoch of the one is joined with every epoch of the
    // other, at most 16 pairs. The present pair is among them: it is read once more, in vain.
    const epochsOf = ({ formerEpochs, epoch }: Shard) => (epoch === undefined ? [] : [...formerEpochs, epoch])
    return epochsOf(address).flatMap(one => epochsOf(site).map(other => (one ^ other) >>> 0))
  }

  admitChallenge(request: ChallengeRequest, done: Done<ChallengeAdmission>): void {
    const { addressKey, metering } = request
    const shard = this.#shardOf(addressKey)
    const keys = [`${shard.keyPrefix}l:${addressKey}`]
    shard.enqueue(visitOperation(shard, keys, `C${limitsText(request)}`, metering, 0), (reply, at, meters) =>
      done(challengeAnswer(reply, at, meters)),
    )
  }

  admitSolution(request: SolutionRequest, done: Done<SolutionAdmission>): void {
    const { addressKey, addressLimit, spend, metering } = request
    const shard = this.#shardOf(addressKey)
    const keys = [`${shard.keyPrefix}l:${addressKey}`]
    if (spend !== undefined && addressLimit > MARKS_LIMIT_MAX) keys.push(`${shard.keyPrefix}n:${spend.nonce}`)
    const text = solutionText(request, spend === undefined ? 0 : this.#keepMs(spend.expiresAtMs))
    const proofs = countsProof(request) ? 1 : 0
    shard.enqueue(visitOperation(shard, keys, text, metering, proofs), (reply, at, meters) =>
      done(solutionAnswer(reply, at, meters)),
    )
  }

  takeBack(request: SolutionRequest, accepted: number): void {
    if (!countsProof(request)) return
    const shard = this.#shardOf(request.addressKey)
    const text = `T${fromCharCode(Math.min(accepted, 0xff))}` // only compared with `returningProofs` (2), so 255 stands for more
    shard.enqueue(visitOperation(shard, NO_KEYS, text, request.metering, -1), () => {})
  }

  redeemToken(request: RedemptionRequest, done: Done<RedemptionAdmission>): void {
    const { apiKey, callerKey } = request
    const callerShard = this.#shardOf(callerKey)
    const siteShard = apiKey === undefined ? callerShard : this.#shardOf(apiKey.siteKey)
    if (siteShard === callerShard)
      callerShard.enqueue(this.#redeemOperation(callerShard, request, true), (reply, at) =>
        done(redemptionAnswer(reply, at)),
      )
    else void this.#redeemAcross(callerShard, siteShard, request).then(done)
  }

  /**
   * Charges the caller on its shard, then the API key and the token on theirs. What the second answers decides over the first charge:
   *
   *   redeemed, untouched   it stays
   *   unavailable           it stays, since the redemption may have run
   *   limited               it is refunded
   *   used, forgotten       it moves to the caller's window of junk
   */
  async #redeemAcross(
    callerShard: Shard,
    siteShard: Shard,
    request: RedemptionRequest,
  ): Promise<RedemptionAdmission> {
    const { callerLimit, apiKey, isJunk = false } = request
    const chargeCaller = (asJunk: boolean) => {
      const callerOnly = { ...request, apiKey: undefined, redeem: undefined, isJunk: asJunk }
      return ask(callerShard, this.#redeemOperation(callerShard, callerOnly, true), (reply, at) => ({
        charged: redemptionAnswer(reply, at),
        chargedAt: reply === undefined ? 0 : firstOf(reply, at), // by which F finds the charge
      }))
    }
    if (!siteShard.isUp) return UNAVAILABLE // nothing would be sent there, so nothing is charged here
    const { charged, chargedAt } = await chargeCaller(isJunk)
    if (charged.status === 'unavailable') return charged
    if (charged.status === 'limited') {
      // A client that waits as told must be admitted, so the longer wait of the two limits counts.
      const keys = [`${siteShard.keyPrefix}k:${windowFor(apiKey!.id, isJunk)}`] // without an API key there is one shard
      const peek = redemptionOperation(keys, `K${uint24Text(apiKey!.limit)}`)
      const ofKey = await ask(siteShard, peek, (reply, at) => reply && limitedAnswer(reply, at))
      return ofKey !== undefined && ofKey.retryAfterMs > charged.retryAfterMs ? ofKey : charged
    }
    const answer = await ask(siteShard, this.#redeemOperation(siteShard, request, false), redemptionAnswer)
    if (answer.status === 'unavailable') return answer
    if (answer.status === 'admitted' && answer.token !== 'used' && answer.token !== 'forgotten') return answer
    const keys = [`${callerShard.keyPrefix}c:${windowFor(request.callerKey, isJunk)}`]
    const refund = redemptionOperation(keys, `F${uint24Text(chargedAt)}${uint24Text(callerLimit)}`)
    await ask(callerShard, refund, () => {})
    if (answer.status === 'limited') return answer
    // A request with a token is not sent as junk. This charge is, but without the token, so R cannot call a refusal that of junk.
    const { charged: chargedAsJunk } = await chargeCaller(true)
    return chargedAsJunk.status === 'limited' ? { ...chargedAsJunk, isJunk: true } : answer
  }

  /** @param withCaller false if the caller is charged on another shard */
  #redeemOperation(shard: Shard, request: RedemptionRequest, withCaller: boolean): Operation {
    const { callerKey, callerLimit, apiKey, redeem, isJunk = false } = request
    const keys: string[] = []
    const addWindow = (letter: 'c' | 'k', name: string) => {
      keys.push(`${shard.keyPrefix}${letter}:${windowFor(name, isJunk)}`)
      // Only the script finds out whether the token was redeemed before, and so is junk.
      if (redeem !== undefined) keys.push(`${shard.keyPrefix}${letter}:${windowOfJunk(name)}`)
    }
    if (withCaller) addWindow('c', callerKey)
    if (apiKey !== undefined) addWindow('k', apiKey.id)
    const limits = uint24Text(withCaller ? callerLimit : 0) + uint24Text(apiKey?.limit ?? 0)
    if (redeem === undefined) return redemptionOperation(keys, `R${limits}${NO_TOKEN}`)
    keys.push(`${shard.keyPrefix}r:${redeem.nonce}`)
    const until = Math.ceil((redeem.expiresAtMs + MARK_MARGIN_MS) / 1000)
    const times =
      uint32Text(this.#keepMs(redeem.expiresAtMs)) + uint32Text(redeem.storeEpoch) + uint32Text(until)
    return redemptionOperation(keys, `R${limits}${times}${redeem.claim}`)
  }

  #keepMs(expiresAtMs: number): number {
    return Math.max(0, Math.ceil(expiresAtMs - this.#now())) + MARK_MARGIN_MS
  }

  #shardOf(key: string): Shard {
    const shards = this.#shards
    if (shards.length === 1) return shards[0]!
    return shards[shardIndex(key, shards.length)]!
  }
}

/** The XOR of both epochs changes with either; with both at once it stays by a chance of 2^-32. undefined until both were reached. */
function jointEpoch(address: Shard, site: Shard): number | undefined {
  if (address === site) return site.epoch
  if (address.epoch === undefined || site.epoch === undefined) return undefined
  return (address.epoch ^ site.epoch) >>> 0
}

function windowFor(key: string, isJunk: boolean): string {
  return isJunk ? windowOfJunk(key) : key
}

/** A batch's reply, in which an operation's answer stands from byte `at` on; undefined if the outcome is unknown. */
type Reply = Buffer | undefined

function ask<Answer>(
  shard: Shard,
  operation: Operation,
  decode: (reply: Reply, at: number) => Answer,
): Promise<Answer> {
  return new Promise(resolve => shard.enqueue(operation, (reply, at) => resolve(decode(reply, at))))
}

const { fromCharCode } = String
const NO_KEYS: readonly string[] = []
const NO_TOKEN = '\0'.repeat(4 + 4 + 4) // time to keep, epoch, time until
const NO_NONCE = '\0'.repeat(4 + 3 + 5) // epoch, time to keep, mark

function visitOperation(
  { keyPrefix }: Shard,
  keys: readonly string[],
  text: string,
  metering: Metering | undefined,
  proofs: 1 | 0 | -1,
): Operation {
  const meters = metering && [...metering.firstProofs, ...metering.meters].map(name => keyPrefix + name)
  const free = metering === undefined || proofs === 0 ? '' : freeProofsText(metering)
  return { script: 'visits', keys, text: text + free, meters: meters ?? NO_KEYS, proofs }
}

function redemptionOperation(keys: readonly string[], text: string): Operation {
  return { script: 'redemptions', keys, text, meters: NO_KEYS, proofs: 0 }
}

/** Free proofs a minute, in 3 bytes each: of the site, then of each network. `add_proof` of lua/visits/meters.lua reads them. */
function freeProofsText({ free }: Metering): string {
  let text = ''
  for (const proofs of free) text += uint24Text(Math.min(Math.round(proofs), 0xffffff))
  return text
}

function solutionText(request: SolutionRequest, keepMs: number): string {
  const { spend } = request
  const head = `V${fromCharCode(verificationKind(request))}${limitsText(request)}`
  if (spend === undefined) return head + NO_NONCE
  const mark = nonceMark(spend.nonce)
  const markHigh = MARK_BIT | Math.floor(mark / MARK_LOW_RANGE) // stands where an entry of the address log has its label
  const markText = uint24Text(markHigh) + uint16Text(mark % MARK_LOW_RANGE)
  return `${head}${uint32Text(spend.storeEpoch)}${uint24Text(keepMs)}${markText}`
}

function limitsText({ siteTag, addressLimit, siteLimit }: ChallengeRequest): string {
  return uint24Text(siteTag) + uint24Text(addressLimit) + uint24Text(siteLimit)
}

function firstOf(reply: Buffer, at: number): number {
  return readUInt24(reply, at + FIRST_AT)
}

function limitedAnswer(reply: Buffer, at: number): Limited {
  const number = reply.readUInt32BE(at + SECOND_AT)
  const policy = POLICIES[number % JUNK] ?? 'address'
  const limited = { status: 'limited', retryAfterMs: firstOf(reply, at), policy } as const
  return number < JUNK ? limited : { ...limited, isJunk: true }
}

function metersOf(reply: Buffer, list: readonly Meter[]): Meters | undefined {
  if (list.length === 0) return undefined
  const nowMs = timeOf(reply)
  const meters = metersFrom(list, nowMs)
  fadeAll(meters, nowMs, PRICING)
  return meters
}

function challengeAnswer(reply: Reply, at: number, meters: readonly Meter[]): ChallengeAdmission {
  if (reply?.[at] === LIMITED) return limitedAnswer(reply, at)
  if (reply?.[at] !== DONE) return UNAVAILABLE
  return {
    status: 'admitted',
    siteCount: firstOf(reply, at),
    accepted: reply.readUInt16BE(at + SECOND_AT),
    failures: reply.readUInt16BE(at + SECOND_AT + 2),
    meters: metersOf(reply, meters),
  }
}

function solutionAnswer(reply: Reply, at: number, meters: readonly Meter[]): SolutionAdmission {
  if (reply?.[at] === LIMITED) return limitedAnswer(reply, at)
  const nonce = NONCE_OUTCOMES[(reply?.[at] ?? 0) - 1]
  if (nonce === undefined) return UNAVAILABLE
  const [failures, accepted] = [firstOf(reply!, at), reply!.readUInt32BE(at + SECOND_AT)]
  return { status: 'admitted', nonce, failures, accepted, meters: metersOf(reply!, meters) }
}

function redemptionAnswer(reply: Reply, at: number): RedemptionAdmission {
  if (reply?.[at] === LIMITED) return limitedAnswer(reply, at)
  const token = TOKEN_OUTCOMES[(reply?.[at] ?? 0) - 1]
  return token === undefined ? UNAVAILABLE : { status: 'admitted', token }
}
