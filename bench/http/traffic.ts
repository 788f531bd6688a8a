/**
 * Valid requests, each different, built in advance so that sending one costs the generator almost nothing.
 *
 * Nonces and tokens are minted with the service's own secret, as another host of the installation would. Nonces state 0 bits,
 * so any counter solves them, at a site whose difficulty is 0 bits too: the service does exactly the work of a real check, and nobody
 * spends hours on solving.
 */

import { parseAddress } from '../../src/addresses/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce } from '../../src/domain/nonce.ts'
import { compileSite, SITE_DEFAULTS } from '../../src/domain/site.ts'
import { mintToken } from '../../src/domain/token.ts'
import { HONEST_ENVIRONMENT } from '../../test/harness/client.ts'
import { visitorAddress } from '../../test/harness/load/addresses.ts'

export type Endpoint = 'challenge' | 'verify' | 'verify-token'
export const ENDPOINTS: readonly Endpoint[] = ['challenge', 'verify', 'verify-token']

/** A text that only the body of a success has. The status is not enough: a failed verification has 200, too. */
export const MARKERS: Readonly<Record<Endpoint, string>> = {
  challenge: '"nonce":"',
  verify: '"passed":true',
  'verify-token': '"success":true',
}

export interface TrafficTarget {
  readonly secret: string
  readonly siteKey: string
  readonly apiKey: string
  readonly storeEpoch: number
}

export interface TrafficSpec {
  readonly endpoint: Endpoint
  readonly count: number
  readonly target: TrafficTarget
}

/** Requests one after the other in `bytes`, and the offset behind each. */
export interface Traffic {
  readonly count: number
  readonly bytes: Buffer
  readonly ends: Uint32Array
}

const REQUEST_BYTES_MAX = 1024
/** Hosts of the site's backend, which redeem its tokens; at most 256, for addresses differ in one byte. */
const CALLERS = 8
const DIFFICULTY = 0
/** Visitors need some time to solve: challenges were issued within the last ten seconds. */
const ISSUED_WITHIN_MS = 10_000
export function buildTraffic(spec: TrafficSpec): Traffic {
  const write = WRITERS[spec.endpoint](spec)
  // Pages that no request reaches are never touched, so the bound costs no memory.
  const bytes = Buffer.allocUnsafeSlow(spec.count * REQUEST_BYTES_MAX)
  const ends = new Uint32Array(spec.count)
  let end = 0
  for (let index = 0; index < spec.count; index++) {
    const text = write({ id: scattered(index), address: visitorAddress(index) })
    if (text.length > REQUEST_BYTES_MAX) throw new RangeError(`a request of ${text.length} bytes`)
    end += bytes.write(text, end, 'latin1')
    ends[index] = end
  }
  return { count: spec.count, bytes, ends }
}

export function requestAt({ bytes, ends }: Traffic, index: number): Buffer {
  return bytes.subarray(index === 0 ? 0 : ends[index - 1]!, ends[index]!)
}

/** Maps indexes to all integers below 2^24, each once since the factor is odd: nonces and tokens that follow each other are no neighbours as keys. */
function scattered(index: number): number {
  return Math.imul(index, 0x9e3779b1) & 0xffffff
}

interface Visitor {
  readonly id: number
  readonly address: string
}

/** @returns the visitor's request */
type Writer = (visitor: Visitor) => string

const WRITERS: Readonly<Record<Endpoint, (spec: TrafficSpec) => Writer>> = {
  challenge: challengeWriter,
  verify: verifyWriter,
  'verify-token': verifyTokenWriter,
}

const HOST = 'Host: captcha.example\r\nUser-Agent: powgate-bench\r\nAccept: */*\r\n'
const JSON_BODY = 'Content-Type: application/json\r\nContent-Length: '

function visitorHeaders({ target }: TrafficSpec): string {
  return `${HOST}Origin: https://shop.example\r\nX-Site-Key: ${target.siteKey}\r\n`
}

/** Requests come as from a load balancer, each naming a client address of its own. */
const forwardedLine = (address: string) => `X-Forwarded-For: ${address}\r\n`

function challengeWriter(spec: TrafficSpec): Writer {
  const headers = visitorHeaders(spec)
  return ({ address }) => `GET /challenge HTTP/1.1\r\n${headers}${forwardedLine(address)}\r\n`
}

function verifyWriter(spec: TrafficSpec): Writer {
  const mint = nonceMinter(spec)
  const headers = visitorHeaders(spec)
  const environment = JSON.stringify(HONEST_ENVIRONMENT)
  return visitor => {
    const { id, address } = visitor
    const fingerprint = id.toString(16).padStart(64, '5eed')
    // The fields and their order are those of src/widget/flow.ts.
    const claims = `"solveTimeMs":40,"fingerprintHash":"${fingerprint}","environment":${environment}`
    const body = `{"nonce":"${mint(visitor)}","counter":${counterOf(id)},${claims}}`
    const head = `POST /verify HTTP/1.1\r\n${headers}${JSON_BODY}${body.length}\r\n`
    return `${head}${forwardedLine(address)}\r\n${body}`
  }
}

function verifyTokenWriter(spec: TrafficSpec): Writer {
  const { secret, storeEpoch, siteKey, apiKey } = spec.target
  const siteTag = compileSite({ ...SITE_DEFAULTS, siteKey, createdAt: 0, updatedAt: 0 }).tokenTag
  const keyring = new Keyring([secret])
  const mint = nonceMinter(spec)
  const issuedAtMs = Date.now()
  return visitor => {
    const { id } = visitor
    const address = parseAddress(visitor.address)!
    const claims = { nonce: mint(visitor), counter: counterOf(id), siteTag, address, score: 1, storeEpoch }
    const body = `{"token":"${mintToken(keyring, { issuedAtMs, lifetimes: LIFETIMES, ...claims })}"}`
    const authorization = `Authorization: Bearer ${apiKey}\r\n`
    const head = `POST /verify-token HTTP/1.1\r\n${HOST}${authorization}${JSON_BODY}${body.length}\r\n`
    return `${head}${forwardedLine(`10.0.0.${id % CALLERS}`)}\r\n${body}`
  }
}

/** Those of the measured service (server.ts), which checks them in nonces and tokens. */
const LIFETIMES = { challengeLifetimeMs: 600_000, tokenLifetimeMs: 300_000 }

/** Six digits, as solutions of about 18 bits have. */
function counterOf(id: number): number {
  return 100_000 + (id % 900_000)
}

/** Issue time and random bits together hold the visitor's id, so no nonce comes twice. @returns mints a visitor's nonce */
function nonceMinter({ target: { secret, siteKey, storeEpoch } }: TrafficSpec): (visitor: Visitor) => string {
  const keyring = new Keyring([secret])
  const now = Date.now()
  return ({ id, address }) => {
    const issuedAtMs = now - (id % ISSUED_WITHIN_MS)
    const randomBits = Math.floor(id / ISSUED_WITHIN_MS)
    const binding = { siteKey, storeEpoch, lifetimes: LIFETIMES, address: parseAddress(address)! }
    return mintNonce(keyring, { issuedAtMs, difficulty: DIFFICULTY }, binding, randomBits)
  }
}
