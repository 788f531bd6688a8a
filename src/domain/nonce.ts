/**
 * Stateless challenges: a nonce carries its own authenticated terms, so unsolved challenges are stored nowhere.
 *
 *    byte  0        5   6    7  8       11            16
 *          +--------+---+----+--+--------+-------------+
 *          | issued at  |d|k| r |site MAC| address MAC |      32 lowercase hex characters
 *          +--------+---+----+--+--------+-------------+
 *    bits      41        5 4 14     24         40
 *
 *   issued at    milliseconds since 2024-01-01 UTC (41 bits last until 2093)
 *   d            difficulty of sha256; of hashwx 15 less, so that 1 to 13 are its 16 to 28 bits
 *   k, r         key id, random bits to tell apart challenges of one millisecond
 *   site MAC     first 3 bytes of SHA-256(nonce key block ++ header ++ site key ++ store epoch ++ lifetimes)
 *   address MAC  first 5 bytes of SHA-256(the 29 other bytes of that digest ++ address)
 *
 * Two MACs tell "another site's, or forged" from "another address" without state. Plain SHA-256 takes 0.5 us a nonce, half of
 * two HMACs, and is safe here: docs/security.md#forging-a-nonce.
 *
 * A store that lost its memory draws a new epoch, so nonces whose use it may have forgotten fail. So do those of other
 * lifetimes, which decide how long a use is remembered.
 */

import { hash } from 'node:crypto'
import type { Address } from '../addresses/address.ts'
import {
  DIFFICULTY_MAX,
  DIFFICULTY_MIN,
  NONCE_LENGTH,
  NONCE_TIME_ZERO_MS,
  type PuzzleName,
} from '../protocol/proof.ts'
import { writeText } from './bytes.ts'
import type { Keyring, SigningKey } from './keyring.ts'

const NONCE_BYTES = 16
const HEADER_BYTES = 8
const HEADER_HEX = HEADER_BYTES * 2
const SITE_MAC_BYTES = 3
const ADDRESS_MAC_OFFSET = HEADER_BYTES + SITE_MAC_BYTES
const ADDRESS_MAC_BYTES = 5
const MAC_BYTES = 32

const SITE_KEY_BYTES = 27
const STORE_EPOCH_OFFSET = HEADER_BYTES + SITE_KEY_BYTES
const LIFETIMES_OFFSET = STORE_EPOCH_OFFSET + 4
const MESSAGE_BYTES = LIFETIMES_OFFSET + 8
const ADDRESS_BYTES = 16

// The header's second 32 bits: | issued at, its low bits 9 | d 5 | k 4 | r 14 |
export const NONCE_RANDOM_BITS = 14
const DIFFICULTY_SHIFT = NONCE_RANDOM_BITS + 4
const TIME_SHIFT = DIFFICULTY_SHIFT + 5
const TIME_LOW_RANGE = 2 ** 9
const HASHWX_OFFSET = DIFFICULTY_MIN - 1

export interface Lifetimes {
  /** Below 2^31, because in a nonce's message the highest bit tells the puzzle. */
  readonly challengeLifetimeMs: number
  /** Below 2^32. */
  readonly tokenLifetimeMs: number
}

/** What a nonce is valid for. */
interface NonceBinding {
  readonly siteKey: string
  /** Unsigned 32 bits. */
  readonly storeEpoch: number
  readonly lifetimes: Lifetimes
  readonly address: Address
}

interface NonceTerms {
  readonly issuedAtMs: number
  readonly puzzle: PuzzleName
  /** 16 to 28 bits. Tests also use 0, 14 and 15 with sha256. */
  readonly difficulty: number
}

export interface GenuineNonce extends NonceTerms {
  readonly status: 'genuine'
}

type NonceReading = GenuineNonce | typeof FORGED | typeof OTHER_ADDRESS

const FORGED = { status: 'forged' } as const
const OTHER_ADDRESS = { status: 'other-address' } as const

/** The nonce that `mintNonce` or `readNonce` works on (bytes.ts). */
const bytes = Buffer.alloc(NONCE_BYTES)

/** Only tests leave out the puzzle. @param randomBits below 2^14 */
export function mintNonce(
  keyring: Keyring,
  { issuedAtMs, puzzle = 'sha256', difficulty }: Omit<NonceTerms, 'puzzle'> & Partial<NonceTerms>,
  binding: NonceBinding,
  randomBits: number,
): string {
  const key = keyring.signing
  writeHeader({ issuedAtMs, puzzle, difficulty }, key.kid, randomBits)
  writeMessage(key, binding, puzzle)
  const mac = key.nonceMac.innerHash(MESSAGE_BYTES)
  for (let index = 0; index < SITE_MAC_BYTES; index++) bytes[HEADER_BYTES + index] = mac.charCodeAt(index)
  const addressMac = macOfAddress(mac, binding.address)
  for (let index = 0; index < ADDRESS_MAC_BYTES; index++)
    bytes[ADDRESS_MAC_OFFSET + index] = addressMac.charCodeAt(index)
  return bytes.toString('hex')
}

/**
 * @param latestMs Unix milliseconds. A later nonce with the right site MAC and a wrong address MAC reads as forged. Otherwise an
 * attacker could find a site MAC for a date far ahead, and guess the address MAC until then
 */
export function readNonce(
  keyring: Keyring,
  nonce: string,
  binding: NonceBinding,
  latestMs: number,
): NonceReading {
  if (nonce.length !== NONCE_LENGTH || bytes.write(nonce, 'hex') !== NONCE_BYTES) return FORGED
  const high = bytes.readUInt32BE(0)
  const low = bytes.readUInt32BE(4)
  const issuedAtMs = issueTime(high, low)
  const { puzzle, difficulty } = workOf(low)
  for (const key of keyring.candidates((low >>> NONCE_RANDOM_BITS) & 0x0f)) {
    writeMessage(key, binding, puzzle)
    const mac = key.nonceMac.innerHash(MESSAGE_BYTES)
    if (differs(mac, HEADER_BYTES, SITE_MAC_BYTES)) continue
    const addressMac = macOfAddress(mac, binding.address)
    if (differs(addressMac, ADDRESS_MAC_OFFSET, ADDRESS_MAC_BYTES))
      return issuedAtMs > latestMs ? FORGED : OTHER_ADDRESS
    return { status: 'genuine', issuedAtMs, puzzle, difficulty }
  }
  return FORGED
}

/** Compares bytes of the nonce with the start of a MAC, in constant time. */
function differs(mac: string, at: number, length: number): boolean {
  let difference = 0
  for (let index = 0; index < length; index++) difference |= mac.charCodeAt(index) ^ bytes[at + index]!
  return difference !== 0
}

/** The terms that a nonce states, which only `readNonce` proves. */
export function nonceTerms(nonce: string): NonceTerms {
  const low = Number.parseInt(nonce.slice(8, HEADER_HEX), 16)
  return { issuedAtMs: issueTime(Number.parseInt(nonce.slice(0, 8), 16), low), ...workOf(low) }
}

/** What an address' record keeps of a used nonce: its address MAC (digits 22 to 31) without the first bit, which the record needs itself. */
export function nonceMark(nonce: string): number {
  const high = Number.parseInt(nonce.slice(22, 28), 16) & 0x7fffff
  return high * 0x10000 + Number.parseInt(nonce.slice(28), 16)
}

/** @param low the second 32 bits of the header */
function workOf(low: number): Pick<NonceTerms, 'puzzle' | 'difficulty'> {
  const bits = (low >>> DIFFICULTY_SHIFT) & 0x1f
  return bits > 0 && bits <= DIFFICULTY_MAX - HASHWX_OFFSET
    ? { puzzle: 'hashwx', difficulty: bits + HASHWX_OFFSET }
    : { puzzle: 'sha256', difficulty: bits }
}

/** @param high the first 32 bits of the header */
function issueTime(high: number, low: number): number {
  return NONCE_TIME_ZERO_MS + high * TIME_LOW_RANGE + (low >>> TIME_SHIFT)
}

function writeHeader(terms: NonceTerms, kid: number, randomBits: number): void {
  const sinceZero = terms.issuedAtMs - NONCE_TIME_ZERO_MS
  const high = Math.floor(sinceZero / TIME_LOW_RANGE)
  if (high >>> 0 !== high) throw new Error('the clock is not between 2024 and 2093: set it')
  const bits = terms.puzzle === 'sha256' ? terms.difficulty : terms.difficulty - HASHWX_OFFSET
  const timeLow = sinceZero % TIME_LOW_RANGE
  const low = (timeLow << TIME_SHIFT) | (bits << DIFFICULTY_SHIFT) | (kid << NONCE_RANDOM_BITS) | randomBits
  bytes.writeUInt32BE(high, 0)
  bytes.writeUInt32BE(low >>> 0, 4)
}

/** Marks lifetimes of hashwx nonces. A host that knows no hashwx would take such a nonce for 1 to 13 bits of SHA-256. */
const HASHWX_BIT = 2 ** 31

function writeMessage(key: SigningKey, binding: NonceBinding, puzzle: PuzzleName): void {
  const { message } = key.nonceMac
  for (let index = 0; index < HEADER_BYTES; index++) message[index] = bytes[index]!
  writeText(message, HEADER_BYTES, binding.siteKey, SITE_KEY_BYTES)
  message.writeUInt32BE(binding.storeEpoch, STORE_EPOCH_OFFSET)
  const bit = puzzle === 'hashwx' ? HASHWX_BIT : 0
  message.writeUInt32BE(binding.lifetimes.challengeLifetimeMs + bit, LIFETIMES_OFFSET)
  message.writeUInt32BE(binding.lifetimes.tokenLifetimeMs, LIFETIMES_OFFSET + 4)
}

const addressMessage = Buffer.alloc(MAC_BYTES + ADDRESS_BYTES)
const addressInput = addressMessage.subarray(SITE_MAC_BYTES)

/** @param mac as one-byte characters; the 3 bytes in the nonce are left out */
function macOfAddress(mac: string, address: Address): string {
  writeText(addressMessage, 0, mac, MAC_BYTES)
  writeText(addressMessage, MAC_BYTES, address, ADDRESS_BYTES)
  return hash('sha256', addressInput, 'binary')
}

/** The slowest device that must finish in time has this speed. */
const SLOW_DEVICE_HASHES_PER_MS = { sha256: 4_000, hashwx: 400 } satisfies Record<PuzzleName, number>
/** 99.9 % of clients need at most this multiple of the mean number of tries. */
const P999_TRIES_OVER_MEAN = Math.log(1000)
/** Used nonces are kept for a lifetime, so it has an end: with HashWX of 26 bits and more, the slowest device may not finish in time. */
const LIFETIME_MS_MAX = 600_000

/** @param floorMs the setting; the lifetime is longer if the slowest device needs it */
export function nonceLifetimeMs(difficulty: number, floorMs: number, puzzle: PuzzleName): number {
  const slowDeviceMs = Math.ceil((P999_TRIES_OVER_MEAN * 2 ** difficulty) / SLOW_DEVICE_HASHES_PER_MS[puzzle])
  return Math.min(LIFETIME_MS_MAX, Math.max(floorMs, slowDeviceMs))
}
