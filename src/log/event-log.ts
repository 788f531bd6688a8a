/** Logs what visitors did, for `powgate explain`: names of events and fields are stable. */

import type { Logger } from 'pino'
import { type Address, formatAddress, formatNetwork, PRIVATE } from '../addresses/address.ts'
import type { Ending, Issued, Judged, Named, Redeemed, Refused } from '../domain/ending.ts'
import { OUTCOMES, type RefusalQuota } from '../domain/outcome.ts'
import { penaltyOf, type ScoreReason, type ScoreSignals, suspiciousFlags } from '../domain/score.ts'
import type { Site } from '../domain/site.ts'
import type { ObservedExchange, Part } from '../http/exchange-host.ts'
import { cut, scrub } from './redaction.ts'

export type LogEvent =
  | 'challenge-issued'
  | 'verification-passed'
  | 'verification-failed'
  | 'token-redeemed'
  | 'refused'
  /** The primary logs these: a backend uses half of a limit or more. */
  | 'redemption-junk'
  | 'redemption-limit'
  /** The primary logs these once: no redemption of an API key names an address; a backend's field is ignored. */
  | 'redemption-unbound'
  | 'field-ignored'
  /** Counts of the last minute beyond the quotas, by event or reason. */
  | 'unlogged'
  /** An exception in powgate itself. */
  | 'fault'

/** Lines per minute and worker. All quotas but successes add up to 1,080 (at level debug 1,200), which make 0.7 GB a day. */
export const FAILURES_PER_MINUTE = 180
export const REFUSALS_PER_MINUTE = 120
const FAULTS_PER_MINUTE = 60
const MINUTE_MS = 60_000

export class EventLog {
  readonly #log: Logger
  readonly #isOn: boolean
  /** True at level trace. */
  readonly #isUnbounded: boolean
  readonly #sample: Sample
  readonly addressText: (address: Address) => string
  /** Peers are mostly the operator's proxies, whose addresses are needed for settings. */
  readonly peerText = (peer: Address) => (PRIVATE.has(peer) ? formatAddress(peer) : this.addressText(peer))
  readonly #failures = new Quota(FAILURES_PER_MINUTE)
  readonly #faults = new Quota(FAULTS_PER_MINUTE)
  readonly #refusals: Readonly<Record<RefusalQuota, Quota>>
  readonly #timer: NodeJS.Timeout

  /**
   * @param successShare of visitors, 0 to 1
   * @param isAddressWhole false: only networks are logged
   */
  constructor(log: Logger, successShare: number, isAddressWhole: boolean) {
    this.#log = log
    this.#isOn = log.isLevelEnabled('info')
    this.#isUnbounded = log.isLevelEnabled('trace')
    this.#sample = new Sample(successShare)
    this.addressText = isAddressWhole ? formatAddress : formatNetwork
    const names = new Set(Object.values(OUTCOMES).map(({ quota }) => quota))
    const quotas = Array.from(names, name => [name, new Quota(REFUSALS_PER_MINUTE)])
    this.#refusals = Object.fromEntries(quotas)
    this.#timer = setInterval(() => this.#renew(), MINUTE_MS).unref()
  }

  /** Writes the last counts. */
  close(): void {
    clearInterval(this.#timer)
    this.#renew()
  }

  ended(exchange: ObservedExchange, part: Part, ending: Ending): void {
    switch (ending.kind) {
      case 'issued':
        return this.#issued(exchange, ending)
      case 'judged':
        return this.#judged(exchange, ending)
      case 'redeemed':
        return this.#redeemed(exchange, ending)
      case 'refused':
        return this.#refused(exchange, part, ending)
    }
  }

  #issued(exchange: ObservedExchange, challenge: Issued): void {
    const { nonce, puzzle, difficulty, bounds, counts, price, traffic } = challenge
    if (!this.#tellsSuccess(nonce)) return
    const { base, min, max, raise } = bounds
    const { address, network, site: ofSite, costliest, isReturning } = price
    const { site: rates, siteExpected } = traffic
    this.#write(exchange, { nonce }, 'challenge-issued', 'challenge issued', {
      puzzle,
      difficulty,
      bounds: { base: base - (raise ?? 0), min, max },
      raise,
      price: { address, network, site: ofSite },
      addressChallenges: counts.challenges,
      addressLimit: counts.limit,
      addressAccepted: counts.accepted,
      isReturning,
      isOfKnownNetwork: traffic.isKnownNetwork || undefined,
      networkPrefix: costliest?.prefixBits,
      networkProofs: costliest && rounded(costliest.recent),
      siteRate: rounded(rates.recent),
      siteRateUsual: rounded(Math.max(siteExpected, rates.usual)),
    })
  }

  #judged(exchange: ObservedExchange, judgement: Judged): void {
    const { nonce, passed, score, reasons, signals, site } = judgement
    const event = passed ? 'verification-passed' : 'verification-failed'
    if (passed ? !this.#tellsSuccess(nonce) : !this.#tellsFailure()) return
    this.#write(exchange, { nonce }, event, passed ? 'verification passed' : 'verification failed', {
      score,
      threshold: site.record.threshold,
      reasons,
      ...(signals === undefined ? {} : signalFields(site, signals, reasons as readonly ScoreReason[])),
    })
  }

  #redeemed(exchange: ObservedExchange, { apiKey, claims }: Redeemed): void {
    const { nonce } = claims
    if (!this.#tellsSuccess(nonce)) return
    this.#write(exchange, { siteKey: apiKey.siteKey, nonce }, 'token-redeemed', 'token redeemed', {
      apiKeyId: apiKey.id,
      visitorIp: this.addressText(claims.address),
      score: claims.score,
      tokenAgeMs: Math.max(0, Date.now() - claims.issuedAtMs),
    })
  }

  #refused(exchange: ObservedExchange, part: Part, { refusal, named = {} }: Refused): void {
    const { reason, policy, mismatch } = refusal
    const { status, code, quota } = OUTCOMES[reason]
    if (reason === 'internal') return // `faulted` has logged it
    const level = quota === 'routine' ? 'debug' : 'info'
    if (!this.#log.isLevelEnabled(level) || !this.#tells(this.#refusals[quota], reason)) return
    const about = {
      ...{ endpoint: part, status, code, reason, policy, apiKeyId: named.apiKeyId },
      expectedIp: mismatch && this.addressText(mismatch.expected),
      visitorIp: mismatch && this.addressText(mismatch.visitor),
    }
    this.#write(exchange, named, 'refused', 'refused', about, level)
  }

  faulted(part: Part, error: unknown, exchange: ObservedExchange): void {
    if (!this.#tells(this.#faults, 'fault')) return
    this.#write(exchange, {}, 'fault', 'a request ran into a fault', { part, err: error }, 'error')
  }

  #tellsSuccess(nonce: string): boolean {
    return this.#isOn && (this.#isUnbounded || this.#sample.has(nonce))
  }

  #tellsFailure(): boolean {
    return this.#isOn && this.#tells(this.#failures, 'verification-failed')
  }

  #tells(quota: Quota, name: string): boolean {
    return this.#isUnbounded || quota.admits(name)
  }

  #write(
    exchange: ObservedExchange,
    named: Named,
    event: LogEvent,
    message: string,
    fields: Record<string, unknown>,
    level: 'debug' | 'info' | 'error' = 'info',
  ): void {
    const { requestId, address, origin } = exchange
    const { siteKey = exchange.siteKey, nonce } = named
    this.#log[level](
      {
        event,
        requestId,
        site: siteKey === '' ? undefined : printable(siteKey, SITE_CHARACTERS_MAX),
        nonce,
        ip: address === undefined ? undefined : this.addressText(address),
        origin: origin === '' ? undefined : printable(origin, ORIGIN_CHARACTERS_MAX),
        ...fields,
      },
      message,
    )
  }

  #renew(): void {
    const counts: Record<string, number> = {}
    for (const quota of [this.#failures, this.#faults, ...Object.values(this.#refusals)]) {
      for (const [name, count] of quota.renew()) counts[name] = (counts[name] ?? 0) + count
    }
    if (Object.keys(counts).length === 0) return
    const event: LogEvent = 'unlogged'
    this.#log.info({ event, counts }, 'more than the log quota: counted only')
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

/** Limits what clients' headers add. Lines stay below 4 KiB, see redaction.ts. */
const ORIGIN_CHARACTERS_MAX = 120
const SITE_CHARACTERS_MAX = 64

/** Removes control characters and look-alikes. Secrets go before the cut, because half a secret cannot be recognized. */
function printable(text: string, charactersMax: number): string {
  return cut(scrub(text).replace(/[^\x20-\x7e]/g, '?'), charactersMax)
}

/** Limits lines per minute: an attack must not fill the disk. */
class Quota {
  readonly #linesMax: number
  #lines = 0
  readonly #leftOut = new Map<string, number>()

  constructor(linesMax: number) {
    this.#linesMax = linesMax
  }

  /** Counts the line under this name if it is refused. */
  admits(name: string): boolean {
    if (this.#lines < this.#linesMax) {
      this.#lines++
      return true
    }
    this.#leftOut.set(name, (this.#leftOut.get(name) ?? 0) + 1)
    return false
  }

  renew(): ReadonlyMap<string, number> {
    this.#lines = 0
    const leftOut = new Map(this.#leftOut)
    this.#leftOut.clear()
    return leftOut
  }
}

/** The nonce's last digits decide: they are uniformly distributed, because they come from a MAC. */
const SAMPLE_DIGITS = 6
const SAMPLE_VALUES = 16 ** SAMPLE_DIGITS

/** Decides by the nonce whose successes are logged, so all hosts log all steps of a visit or none. */
export class Sample {
  readonly #below: number

  constructor(share: number) {
    this.#below = share * SAMPLE_VALUES
  }

  /** @param nonce 32 lowercase hexadecimal characters */
  has(nonce: string): boolean {
    return Number.parseInt(nonce.slice(-SAMPLE_DIGITS), 16) < this.#below
  }
}
