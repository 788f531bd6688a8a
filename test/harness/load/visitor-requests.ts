/** The requests of visitors, and which answers mean that the service is overloaded. */

import { parseAddress } from '../../../src/addresses/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { type Lifetimes, mintNonce } from '../../../src/domain/nonce.ts'
import { readToken } from '../../../src/domain/token.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT, solve } from '../client.ts'
import { TEST_SECRET, type TestSite, UNLIMITED_REDEMPTIONS } from '../service.ts'
import { ADDRESSES_MAX, visitorAddress } from './addresses.ts'

export type Step = 'challenge' | 'verify' | 'redeem'

export interface RequestTarget {
  /** Of difficulty FREE (traffic.ts), if nonces state 0 bits. */
  readonly site: TestSite
  /** Bits that nonces state; 0 if left out: then any counter solves them. */
  readonly difficulty?: number
  readonly storeEpoch: number
  readonly lifetimes: Lifetimes
  /** After so many visitors their addresses come again; ADDRESSES_MAX if left out. */
  readonly addresses?: number
}

const HEAD = 'Host: powgate\r\nContent-Type: application/json\r\n'
const ENVIRONMENT = JSON.stringify(HONEST_ENVIRONMENT)
const CALLERS = 250
/** The bits of a visitor's number that go into the nonce. */
const RANDOM_BITS = 0x3fff

/** Settings of a service whose visitors and backends are all one process. */
export const VISITED_SETTINGS = {
  POWGATE_TRUSTED_PROXIES: '127.0.0.0/8',
  ...UNLIMITED_REDEMPTIONS,
} as const

/** The store's epoch, read from a token of one whole flow by the real client. */
export async function storeEpochOf(url: string, site: TestSite): Promise<number> {
  const token = await new Client(url).token(site.siteKey)
  const reading = readToken(new Keyring([TEST_SECRET]), token)
  if (reading.status !== 'genuine') throw new Error('the service signs with another secret')
  return reading.claims.storeEpoch
}

export function challengeText(siteKey: string, address: string): string {
  return `GET /challenge HTTP/1.1\r\nX-Site-Key: ${siteKey}\r\nX-Forwarded-For: ${address}\r\n${HEAD}\r\n`
}

/**
 * Requests of visitors. Their nonces are made here, as another host of the same installation would make them, usually with
 * a difficulty of 0 bits. The service does all the work for a real solution, and no time is spent on solving. (1.5 us each:
 * not worth making ahead.)
 */
export class VisitorRequests {
  readonly #target: RequestTarget
  readonly #keyring = new Keyring([TEST_SECRET])
  #redeemed = 0

  constructor(target: RequestTarget) {
    this.#target = target
  }

  challenge(visitor: number): string {
    return challengeText(this.#target.site.siteKey, this.addressOf(visitor))
  }

  verify(visitor: number): string {
    const { site, storeEpoch, lifetimes, difficulty = 0 } = this.#target
    const text = this.addressOf(visitor)
    const terms = { issuedAtMs: Date.now(), difficulty }
    const binding = { siteKey: site.siteKey, storeEpoch, lifetimes, address: parseAddress(text)! }
    const nonce = mintNonce(this.#keyring, terms, binding, visitor & RANDOM_BITS)
    const counter = difficulty === 0 ? 7 : solve(nonce, difficulty)
    const body = `{"nonce":"${nonce}","counter":${counter},"fingerprintHash":"${FINGERPRINT}","environment":${ENVIRONMENT}}`
    return `POST /verify HTTP/1.1\r\nX-Site-Key: ${site.siteKey}\r\nX-Forwarded-For: ${text}\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`
  }

  addressOf(visitor: number): string {
    return visitorAddress(visitor % (this.#target.addresses ?? ADDRESSES_MAX))
  }

  redeem(visitor: number, token: string): string {
    const body = `{"token":"${token}","expectedIp":"${this.addressOf(visitor)}"}`
    const caller = `172.16.0.${this.#redeemed++ % CALLERS}`
    return `POST /verify-token HTTP/1.1\r\nAuthorization: Bearer ${this.#target.site.apiKey}\r\nX-Forwarded-For: ${caller}\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`
  }
}

/** Recognises well-formed refusals for overload. They are constants, so each text is checked once. */
export class OverloadAnswers {
  readonly #known: Partial<Record<Step, string>> = {}

  has(answer: string, step: Step): boolean {
    if (answer === this.#known[step]) return true
    if (!answer.startsWith('HTTP/1.1 503 ') || !isWellFormed(answer, step)) return false
    this.#known[step] = answer
    return true
  }
}

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
