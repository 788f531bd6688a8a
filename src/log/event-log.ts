/** Logs what visitors and backends did, for `powgate explain`, and faults, within quotas. Names of events and fields are stable. */

import { type Address, formatAddress, formatNetwork, PRIVATE } from '../addresses/address.ts'
import type { Ending, Issued, Judged, Redeemed, RefusalSubject, Refused } from '../domain/ending.ts'
import { OUTCOMES, type RefusalCategory } from '../domain/outcome.ts'
import { penaltyOf, type ScoreReason, type ScoreSignals, suspiciousFlags } from '../domain/score.ts'
import type { Site } from '../domain/site.ts'
import type { EndpointLabel, ObservedExchange } from '../http/exchange-host.ts'
import type { Logger } from '../packages/pino.ts'
import { cut, scrubByForm } from './redaction.ts'

/**
 * Lines a minute of one worker. Each of seven categories of refusals (at level debug: eight) has a quota: with failures and faults that
 * makes 1,080, or 0.7 GB a day.
 */
export const FAILURES_PER_MINUTE = 180
export const REFUSALS_PER_MINUTE = 120
const FAULTS_PER_MINUTE = 60
const MINUTE_MS = 60_000

export class EventLog {
  readonly #log: Logger
  readonly #successShare: number
  readonly #sampleKey: number
  readonly #addressText: (address: Address) => string
  readonly #failures = new Quota(FAILURES_PER_MINUTE)
  readonly #faults = new Quota(FAULTS_PER_MINUTE)
  readonly #refusals: Readonly<Record<RefusalCategory, Quota>>
  readonly #timer: NodeJS.Timeout

  /** @param successShare the share of visitors whose successes are logged, 0 to 1. @param isAddressWhole false: only networks are logged */
  constructor(log: Logger, successShare: number, sampleKey: number, isAddressWhole: boolean) {
    this.#log = log
    this.#successShare = successShare
    this.#sampleKey = sampleKey
    this.#addressText = isAddressWhole ? formatAddress : formatNetwork
    const categories = new Set(Object.values(OUTCOMES).map(({ category }) => category))
    const quotas = Array.from(categories, name => [name, new Quota(REFUSALS_PER_MINUTE)])
    this.#refusals = Object.fromEntries(quotas)
    this.#timer = setInterval(() => this.#reportLeftOut(), MINUTE_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#reportLeftOut()
  }

  /** Writes private addresses whole: they are mostly those of the operator's proxies, which POWGATE_TRUSTED_PROXIES needs. */
  peerText(peer: Address): string {
    return PRIVATE.has(peer) ? formatAddress(peer) : this.#addressText(peer)
  }

  ended(exchange: ObservedExchange, endpoint: EndpointLabel, ending: Ending): void {
    switch (ending.kind) {
      case 'issued':
        return this.#issued(exchange, ending)
      case 'judged':
        return this.#judged(exchange, ending)
      case 'redeemed':
        return this.#redeemed(exchange, ending)
      case 'refused':
        return this.#refused(exchange, endpoint, ending)
    }
  }

  #issued(exchange: ObservedExchange, challenge: Issued): void {
    const { nonce, puzzle, difficulty, bounds, counts, price, traffic } = challenge
    if (!this.#logsSuccess(nonce)) return
    const { base, min, max, raise } = bounds
    const { addressBits, networkBits, siteBits, costliest, isReturning } = price
    const { siteRates, siteExpected } = traffic
    this.#write(exchange, { nonce }, 'challenge-issued', 'challenge issued', {
      puzzle,
      difficulty,
      bounds: { base: base - (raise ?? 0), min, max }, // `bounds.base` includes the raise
      raise,
      price: { address: addressBits, network: networkBits, site: siteBits },
      addressChallenges: counts.challenges,
      addressLimit: counts.limitPerMinute,
      addressAccepted: counts.accepted,
      isReturning,
      isOfKnownNetwork: traffic.isKnownNetwork || undefined,
      networkPrefix: costliest?.prefixBits,
      networkProofs: costliest?.recent,
      siteRate: siteRates.recent,
      siteRateUsual: rounded(Math.max(siteExpected, siteRates.usual)),
    })
  }

  #judged(exchange: ObservedExchange, judgement: Judged): void {
    const { nonce, passed, score, reasons, signals, site } = judgement
    const event = passed ? 'verification-passed' : 'verification-failed'
    const isLogged = passed ? this.#logsSuccess(nonce) : this.#takeFrom(this.#failures, event)
    if (!isLogged) return
    this.#write(exchange, { nonce }, event, passed ? 'verification passed' : 'verification failed', {
      score,
      threshold: site.record.threshold,
      reasons,
      // Signals are there if a score was computed. Then every reason is a ScoreReason.
      ...(signals === undefined ? {} : signalFields(site, signals, reasons as readonly ScoreReason[])),
    })
  }

  #redeemed(exchange: ObservedExchange, { apiKey, claims }: Redeemed): void {
    const { nonce } = claims
    if (!this.#logsSuccess(nonce)) return
    this.#write(exchange, { siteKey: apiKey.siteKey, nonce }, 'token-redeemed', 'token redeemed', {
      apiKeyId: apiKey.id,
      visitorIp: this.#addressText(claims.address),
      score: claims.score,
      tokenAgeMs: Math.max(0, Date.now() - claims.issuedAtMs),
    })
  }

  #refused(exchange: ObservedExchange, endpoint: EndpointLabel, { refusal, subject = {} }: Refused): void {
    const { reason, isJunk, mismatch } = refusal
    const policy = isJunk ? 'junk' : refusal.policy
    const { status, code, category } = OUTCOMES[reason]
    if (reason === 'internal' || reason === 'overloaded') return // `faulted` logs internal; lines about shed requests would add to the load
    const level = category === 'routine' ? 'debug' : 'info'
    if (!this.#log.isLevelEnabled(level) || !this.#takeFrom(this.#refusals[category], reason)) return
    const { apiKeyId } = subject
    const expectedIp = mismatch && this.#addressText(mismatch.expected)
    const visitorIp = mismatch && this.#addressText(mismatch.visitor)
    const fields = { endpoint, status, code, reason, policy, apiKeyId, expectedIp, visitorIp }
    this.#write(exchange, subject, 'refused', 'refused', fields, level)
  }

  faulted(exchange: ObservedExchange, endpoint: EndpointLabel, error: unknown): void {
    if (!this.#takeFrom(this.#faults, 'fault')) return
    this.#write(exchange, {}, 'fault', 'a request ran into a fault', { part: endpoint, err: error }, 'error')
  }

  /** At level trace, sampling does not apply, nor do quotas. */
  #logsSuccess(nonce: string): boolean {
    return this.#log.isLevelEnabled('trace') || isSampled(nonce, this.#successShare, this.#sampleKey)
  }

  #takeFrom(quota: Quota, name: string): boolean {
    return this.#log.isLevelEnabled('trace') || quota.take(name)
  }

  #write(
    exchange: ObservedExchange,
    subject: RefusalSubject,
    event: string,
    message: string,
    fields: Record<string, unknown>,
    level: 'debug' | 'info' | 'error' = 'info',
  ): void {
    // Reading `requestId` makes an id, which the answer then carries: without a line it would lead nowhere.
    if (!this.#log.isLevelEnabled(level)) return
    const { requestId, address, origin } = exchange
    const { siteKey = exchange.siteKey, nonce } = subject
    this.#log[level](
      {
        event,
        requestId,
        site: siteKey === '' ? undefined : asciiText(siteKey, SITE_CHARACTERS_MAX),
        nonce,
        ip: this.#addressText(address),
        origin: origin === '' ? undefined : asciiText(origin, ORIGIN_CHARACTERS_MAX),
        ...fields,
      },
      message,
    )
  }

  /** Logs how many lines the quotas have left out since the last call, and renews the quotas. */
  #reportLeftOut(): void {
    const counts: Record<string, number> = {}
    for (const quota of [this.#failures, this.#faults, ...Object.values(this.#refusals)]) {
      for (const [name, count] of quota.renew()) counts[name] = (counts[name] ?? 0) + count
    }
    if (Object.keys(counts).length === 0) return
    this.#log.info({ event: 'unlogged', counts }, 'log quota exceeded: these lines were only counted')
  }
}

function signalFields(
  { scoreWeights }: Site,
  signals: ScoreSignals,
  reasons: readonly ScoreReason[],
): Record<string, unknown> {
  const { environment, elapsedMs, solveTimeMs, difficulty, addressFailures } = signals
  return {
    penalties: Object.fromEntries(
      reasons.map(reason => [reason, rounded(penaltyOf(reason, signals, scoreWeights))]),
    ),
    environment: environment === undefined ? null : suspiciousFlags(environment),
    difficulty,
    elapsedMs,
    solveTimeMs,
    addressFailures,
  }
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}

/** Texts from clients are cut to these lengths, so that lines stay below 4 KiB (redaction.ts). */
const ORIGIN_CHARACTERS_MAX = 120
const SITE_CHARACTERS_MAX = 64

/** Replaces all but printable ASCII. Secrets are removed before the cut, because half a secret cannot be recognized. */
function asciiText(text: string, charactersMax: number): string {
  return cut(scrubByForm(text).replace(/[^\x20-\x7e]/g, '?'), charactersMax)
}

/** Limits lines per minute: an attack must not fill the disk. */
class Quota {
  readonly #linesMax: number
  #lines = 0
  #leftOut = new Map<string, number>()

  constructor(linesMax: number) {
    this.#linesMax = linesMax
  }

  /** @returns whether the line may be logged; if not, it is counted under this name */
  take(name: string): boolean {
    if (this.#lines < this.#linesMax) {
      this.#lines++
      return true
    }
    this.#leftOut.set(name, (this.#leftOut.get(name) ?? 0) + 1)
    return false
  }

  /** Begins a new minute. Returns how many lines the last one left out, by name. */
  renew(): ReadonlyMap<string, number> {
    const leftOut = this.#leftOut
    this.#lines = 0
    this.#leftOut = new Map()
    return leftOut
  }
}

/**
 * Decides by the nonce whose successes are logged, so all hosts log all steps of a visit or none. The last eight digits are
 * uniformly distributed, because they come from a MAC. They are mixed with a key (the steps are those of MurmurHash3's end, a
 * bijection of 32 bits), because a bot that can tell which of its visits are logged solves only the others.
 */
export function isSampled(nonce: string, share: number, sampleKey: number): boolean {
  let mixed = Number.parseInt(nonce.slice(-8), 16) ^ sampleKey
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32 < share
}
