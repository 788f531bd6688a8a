/**
 * Valid requests, every one different, built ahead of time so that sending one costs the generator next to nothing.
 *
 * Nonces and tokens are minted here with the service's own secret, as another host of the same installation would. A
 * nonce states its difficulty itself, authenticated, so these state 0 bits: any counter solves them, and the service
 * does exactly the work of a real check (parse, two MACs, one SHA-256, comparison). Solving 18 bits for every request
 * would take hours.
 */

import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce } from '../../src/domain/nonce.ts'
import { compileSite, SITE_DEFAULTS } from '../../src/domain/site.ts'
import { mintToken } from '../../src/domain/token.ts'
import { HONEST_ENVIRONMENT } from '../../test/support/client.ts'

export type Endpoint = 'challenge' | 'verify' | 'verify-token'
export const ENDPOINTS: readonly Endpoint[] = ['challenge', 'verify', 'verify-token']

/** What the requests are made for. */
export interface TrafficTarget {
  readonly secret: string
  readonly siteKey: string
  /** At least one. */
  readonly apiKeys: readonly string[]
  readonly storeEpoch: number
}

export interface TrafficSpec {
  readonly endpoint: Endpoint
  /** At most 2^24, the number of addresses. */
  readonly count: number
  readonly target: TrafficTarget
  /** Whether requests come as from a load balancer, each naming a client address of its own. */
  readonly isForwarded: boolean
}

/** Requests one after another in one block of memory. */
export interface Traffic {
  readonly count: number
  readonly bytes: Buffer
  /** Where each request ends. */
  readonly ends: Uint32Array
}

const REQUEST_BYTES_MAX = 1024
const DIRECT_ADDRESS = '127.0.0.1'
/** Backends that redeem tokens are far fewer than visitors. */
const CALLERS = 1024
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
    const text = write(scattered(index))
    if (text.length > REQUEST_BYTES_MAX) throw new RangeError(`a request of ${text.length} bytes`)
    end += bytes.write(text, end, 'latin1')
    ends[index] = end
  }
  return { count: spec.count, bytes, ends }
}

/** All integers below 2^24, each once, in an order without locality: neighbours in time are not neighbours as keys. */
function scattered(index: number): number {
  return Math.imul(index, 0x9e3779b1) & 0xffffff
}

type Writer = (id: number) => string

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

function forwardedLine(spec: TrafficSpec, id: number): string {
  return spec.isForwarded ? `X-Forwarded-For: ${addressOf(spec, id)}\r\n` : ''
}

function addressOf(spec: TrafficSpec, id: number): string {
  return spec.isForwarded ? `10.${id >> 16}.${(id >> 8) & 0xff}.${id & 0xff}` : DIRECT_ADDRESS
}

function challengeWriter(spec: TrafficSpec): Writer {
  const head = `GET /challenge HTTP/1.1\r\n${visitorHeaders(spec)}`
  return id => `${head}${forwardedLine(spec, id)}\r\n`
}

function verifyWriter(spec: TrafficSpec): Writer {
  const head = `POST /verify HTTP/1.1\r\n${visitorHeaders(spec)}${JSON_BODY}`
  const mint = nonceMinter(spec)
  const rest = `"solveTimeMs":40,"environment":${JSON.stringify(HONEST_ENVIRONMENT)}}`
  return id => {
    const fingerprint = id.toString(16).padStart(64, '5eed')
    const body = `{"nonce":"${mint(id)}","counter":${counterOf(id)},"fingerprintHash":"${fingerprint}",${rest}`
    return `${head}${body.length}\r\n${forwardedLine(spec, id)}\r\n${body}`
  }
}

function verifyTokenWriter(spec: TrafficSpec): Writer {
  const { apiKeys, secret, siteKey, storeEpoch } = spec.target
  const { tag: siteTag } = compileSite({
    ...SITE_DEFAULTS,
    siteKey,
    name: '',
    origins: [],
    ipRules: { allow: [], block: [] },
    createdAt: 0,
    updatedAt: 0,
  })
  const keyring = new Keyring([secret])
  const mint = nonceMinter(spec)
  const issuedAtMs = Date.now()
  return id => {
    const address = parseAddress(addressOf(spec, id))!
    const claims = { nonce: mint(id), counter: counterOf(id), siteTag, address, score: 1, storeEpoch }
    const body = `{"token":"${mintToken(keyring, { issuedAtMs, ...claims })}"}`
    const authorization = `Authorization: Bearer ${apiKeys[id % apiKeys.length]}\r\n`
    const head = `POST /verify-token HTTP/1.1\r\n${HOST}${authorization}${JSON_BODY}${body.length}\r\n`
    return `${head}${forwardedLine(spec, id % CALLERS)}\r\n${body}`
  }
}

/** Six digits, as solutions of about 18 bits have. */
function counterOf(id: number): number {
  return 100_000 + (id % 900_000)
}

/** Issue time and random bits together number the nonces of one address, so none comes twice. */
function nonceMinter(spec: TrafficSpec): Writer {
  const { secret, siteKey, storeEpoch } = spec.target
  const keyring = new Keyring([secret])
  const now = Date.now()
  return id => {
    const issuedAtMs = now - (id % ISSUED_WITHIN_MS)
    const address = parseAddress(addressOf(spec, id))!
    const randomBits = Math.floor(id / ISSUED_WITHIN_MS)
    return mintNonce(
      keyring,
      { issuedAtMs, difficulty: DIFFICULTY },
      { siteKey, storeEpoch, address },
      randomBits,
    )
  }
}
