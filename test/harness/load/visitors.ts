/**
 * Visitors who each request a challenge, send a solution (of a nonce that is made here: see `#solution`) and have the token redeemed,
 * one after the other, over one connection. A visitor who is refused leaves. Latencies count from when a request is written.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { parseAddress } from '../../../src/addresses/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { type Lifetimes, mintNonce, NONCE_RANDOM_BITS } from '../../../src/domain/nonce.ts'
import { readToken, type TokenClaims } from '../../../src/domain/token.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT, solve } from '../client.ts'
import { TEST_SECRET, type TestSite, UNLIMITED_REDEMPTIONS } from '../service.ts'
import { ADDRESSES_MAX, visitorAddress } from './addresses.ts'
import type { Latencies, Line, LoadTarget, LoadTimes, Measured } from './load.ts'
import { CLOSED_LOOP, Load, NOBODY, Times } from './load.ts'

const STEPS = ['challenge', 'verify', 'redeem'] as const
type Step = (typeof STEPS)[number]

interface VisitorsTarget extends LoadTarget {
  /** Must have the difficulty FREE if nonces state 0 bits. */
  readonly site: TestSite
  /** Bits that nonces state; 0 if left out: then any counter solves them. */
  readonly difficulty?: number
  readonly storeEpoch: number
  readonly lifetimes: Lifetimes
  /** After so many visitors their addresses come again; ADDRESSES_MAX if left out. */
  readonly addresses?: number
  /** Share of visitors who never send a solution. */
  readonly leaveShare?: number
}

/** The difficulty of a site where any counter solves a challenge; any other refuses a solution of 0 bits as far too cheap. */
export const FREE = { base: 0, min: 0, max: 0 }

export interface VisitorsSpec extends VisitorsTarget, LoadTimes {}

/** All counts are of the measured time, unless another is named. An answer counts when it comes. */
export interface VisitorsResult extends Measured {
  readonly seconds: number
  /** Visitors whose first request was written. */
  readonly came: number
  /** Visitors whose token was redeemed. */
  readonly served: number
  /** Visitors who left with a challenge. */
  readonly left: number
  readonly admitted: Latencies
  /** Refused requests by step, from the first visitor to the last. */
  readonly shedOf: Readonly<Record<Step, number>>
  /** CPU time of the measured processes, divided by the measured time. */
  readonly busy: number
}

export const refusalsOf = ({ shedOf }: VisitorsResult) => shedOf.challenge + shedOf.verify + shedOf.redeem

/** All visitors and backends are one process: X-Forwarded-For tells them apart, and few backends redeem every token. */
export const VISITED_SETTINGS = { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', ...UNLIMITED_REDEMPTIONS } as const

/** What the tokens of a site contain, read from one whole flow by the real client. */
export async function claimsAt(url: string, site: TestSite): Promise<TokenClaims> {
  const reading = readToken(new Keyring([TEST_SECRET]), await new Client(url).token(site.siteKey))
  if (reading.status !== 'genuine') throw new Error('the service signs with another secret')
  return reading.claims
}

const HEAD = 'Host: powgate\r\nContent-Type: application/json\r\n'
const ENVIRONMENT = JSON.stringify(HONEST_ENVIRONMENT)
/** Backends call from so many addresses in turn, which differ in the last number alone. */
const BACKENDS = 250
/** Only where the service does not keep up is no connection free for so long. Visitors who came later would add to the rate. */
const PATIENCE_MS = 100

/** Continues over all runs, because visitors with the same addresses would share limits. */
let nextVisitor = 0

export class VisitorLoad extends Load<VisitorsTarget> {
  /** Every answer contains an empty text, so `isGood` means status 200 alone; `#isExpected` reads the rest. */
  readonly marker = Buffer.alloc(0)
  /** Requests that succeeded, from the first visitor to the last. */
  readonly answers: Record<Step, number> = { challenge: 0, verify: 0, redeem: 0 }
  protected readonly patienceMs = PATIENCE_MS
  readonly #keyring = new Keyring([TEST_SECRET])
  /** Refusals for overload are constants, so each text is checked once. */
  readonly #overloadAnswers: Partial<Record<Step, string>> = {}
  readonly #admitted = new Times()
  readonly #shedOf = { challenge: 0, verify: 0, redeem: 0 }
  #redemptionsSent = 0
  #came = 0
  #served = 0
  #left = 0

  /** How many visitors a second come if one comes as soon as another leaves, for this time. */
  async capacity(ms: number): Promise<number> {
    const [before, startedAtMs] = [this.answers.challenge, performance.now()]
    this.setRate(CLOSED_LOOP)
    await sleep(ms)
    const perSecond = ((this.answers.challenge - before) / (performance.now() - startedAtMs)) * 1000
    this.setRate(NOBODY)
    return perSecond
  }

  async visit(times: LoadTimes): Promise<VisitorsResult> {
    const measured = await this.measured(times)
    return {
      ...measured,
      seconds: measured.measuredMs / 1000,
      came: this.#came,
      served: this.#served,
      left: this.#left,
      admitted: this.#admitted.latencies(),
      shedOf: this.#shedOf,
      busy: measured.usages.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / measured.measuredMs,
    }
  }

  protected begin(line: Line): string {
    line.visitor = nextVisitor++
    if (this.isMeasured(performance.now())) this.#came++
    line.step = 0
    return this.#request(line)
  }

  protected next(line: Line, latencyMs: number, isGood: boolean): string | undefined {
    const { text } = line
    const step = stepOf(line)
    const isMeasured = this.isMeasured(performance.now())
    if (this.#isOverload(text, step)) {
      this.#shedOf[step]++
      return undefined
    }
    const token = step === 'verify' ? /"token":"([^"]+)"/.exec(text)?.[1] : undefined
    if (!isGood || !this.#isExpected(line, token)) {
      this.fail(line, text)
      return undefined
    }
    this.answers[step]++
    if (isMeasured) this.#admitted.add(latencyMs)
    const spread = (line.visitor * 0.6180339887498949) % 1 // evenly over visitors, by the golden ratio
    const isLeaving = step === 'challenge' && spread < (this.target.leaveShare ?? 0)
    if (isMeasured && isLeaving) this.#left++
    if (isMeasured && step === 'redeem') this.#served++
    if (isLeaving || step === 'redeem') return undefined
    line.step++
    return this.#request(line, token)
  }

  #isOverload(answer: string, step: Step): boolean {
    if (answer === this.#overloadAnswers[step]) return true
    if (!answer.startsWith('HTTP/1.1 503 ') || !isWellFormed(answer, step)) return false
    this.#overloadAnswers[step] = answer
    return true
  }

  #isExpected(line: Line, token: string | undefined): boolean {
    const { text, visitor } = line
    const step = stepOf(line)
    if (step === 'challenge') return text.includes('"nonce":"')
    if (step === 'verify') return token !== undefined && text.includes('"passed":true')
    return text.includes(`"ip":"${this.#addressOf(visitor)}"`) && text.includes('"success":true')
  }

  #addressOf(visitor: number): string {
    return visitorAddress(visitor % (this.target.addresses ?? ADDRESSES_MAX))
  }

  #request(line: Line, token?: string): string {
    const { siteKey, apiKey } = this.target.site
    const step = stepOf(line)
    const address = this.#addressOf(line.visitor)
    const visitor = `X-Site-Key: ${siteKey}\r\nX-Forwarded-For: ${address}\r\n`
    if (step === 'challenge') return `GET /challenge HTTP/1.1\r\n${visitor}${HEAD}\r\n`
    if (step === 'verify') return postRequest('/verify', visitor, this.#solution(address, line.visitor))
    const backend = `Authorization: Bearer ${apiKey}\r\nX-Forwarded-For: 172.16.0.${this.#redemptionsSent++ % BACKENDS}\r\n`
    return postRequest('/verify-token', backend, `{"token":"${token}","expectedIp":"${address}"}`)
  }

  /**
   * The nonce is made here, as another host of the same installation would make it, usually with a difficulty of 0 bits. The
   * service does all the work for a real solution, and no time is spent on solving. (1.5 us each: not worth making ahead.)
   */
  #solution(address: string, visitor: number): string {
    const { site, storeEpoch, lifetimes, difficulty = 0 } = this.target
    const binding = { siteKey: site.siteKey, storeEpoch, lifetimes, address: parseAddress(address)! }
    const terms = { issuedAtMs: Date.now(), difficulty }
    const nonce = mintNonce(this.#keyring, terms, binding, visitor % 2 ** NONCE_RANDOM_BITS) // not random, but another each time
    const counter = difficulty === 0 ? 7 : solve(nonce, difficulty) // 7 or any other number solves 0 bits
    return `{"nonce":"${nonce}","counter":${counter},"fingerprintHash":"${FINGERPRINT}","environment":${ENVIRONMENT}}`
  }
}

const stepOf = ({ step }: Line) => STEPS[step]!

const postRequest = (path: string, lines: string, body: string) =>
  `POST ${path} HTTP/1.1\r\n${lines}${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`

/** As in docs/reference/limits.md and the interface: code, Retry-After, CORS headers for browsers and none for backends. */
function isWellFormed(answer: string, step: Step): boolean {
  const hasRetry = /\r\nRetry-After: [1-9]\d*\r\n/.test(answer)
  const hasCors = answer.includes('\r\nAccess-Control-Allow-Origin: *\r\n')
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4)
  const isRedemption = step === 'redeem'
  return (
    hasRetry &&
    hasCors === !isRedemption &&
    body.includes('"code":"overloaded"') &&
    body.startsWith('{"success":false,') === isRedemption
  )
}
