/**
 * Verification tokens tell a backend that a visitor solved a challenge. docs/architecture.md#decisions says why claims are
 * encrypted and lifetimes are inside.
 *
 *   <issuedAtMs>|<nonce>|<counter>|<sealed>|<hmac>
 *        13         32     1..16    48 ..     43      characters
 *
 *   sealed  base64url of 36 bytes: version and key id (4 bits each) and lifetimes (3) in the clear, then the claims, encrypted:
 *             site tag 10 | visitor address 16 | score 2 (thousandths) | store epoch 4
 *           Version 4 adds, in the clear because the browser knows it, base64url of the page (page.ts).
 *   hmac    base64url of HMAC-SHA256(token key, every byte before this field): encrypt-then-MAC. One hash alone could be
 *           extended to a longer text, because all of it is shown.
 *
 * The key stream is SHA-256(claims key block ++ "<issuedAtMs>|<nonce>|<counter>") (`Hmac.innerHash`), without a random part:
 * only two workers that fail open can use it twice, for one nonce in one millisecond, which shows no more than how far that
 * visitor's two scores differ.
 *
 * Every field has a fixed width, one canonical spelling (the counter) or ends at a `|` (`sealed`), so no two field lists
 * share an encoding. The HMAC is compared as text, which covers the spare bits of its last character. Tokens without a page
 * keep version 3, so old and new hosts redeem each other's during a rolling upgrade.
 *
 * Lifetimes are 12 bits each, in seconds: first the challenge's (the setting, which nonceLifetimeMs may lengthen), because a redemption must know how long the nonce could
 * yield another token, then the token's.
 */

import type { Address } from '../addresses/address.ts'
import { readUInt24, writeDecimal, writeText, writeUInt24 } from './bytes.ts'
import { equalInConstantTime, type Keyring, type SigningKey } from './keyring.ts'
import type { Lifetimes } from './nonce.ts'
import { PAGE_TEXT_MAX, type Page, pageText, readPage } from './page.ts'

const VERSION = 3
const PAGE_VERSION = 4
const SITE_TAG_BYTES = 10
const ADDRESS_OFFSET = SITE_TAG_BYTES
const ADDRESS_BYTES = 16
const SCORE_OFFSET = ADDRESS_OFFSET + ADDRESS_BYTES
const STORE_EPOCH_OFFSET = SCORE_OFFSET + 2
const CLAIMS_BYTES = STORE_EPOCH_OFFSET + 4
const HMAC_CHARACTERS = 43
const SCORE_SCALE = 1000
const DELIMITER = 0x7c
const LIFETIMES_OFFSET = 1
const CLAIMS_OFFSET = LIFETIMES_OFFSET + 3
const SEALED_CHARACTERS = ((CLAIMS_OFFSET + CLAIMS_BYTES) / 3) * 4

const SHAPE = new RegExp(
  `^(\\d{13})\\|([0-9a-f]{32})\\|(0|[1-9]\\d{0,15})\\|([\\w-]{${SEALED_CHARACTERS},${SEALED_CHARACTERS + PAGE_TEXT_MAX}})\\|([\\w-]{43})$`,
)

/** A redemption record is kept so long at most: two hours that a host's clock may be ahead, a token's hour at most, and a minute. */
export const RECORD_KEPT_MS_MAX = (2 + 1) * 3_600_000 + 60_000

export interface TokenClaims {
  readonly issuedAtMs: number
  /** The values at issue: whole seconds below 4096. */
  readonly lifetimes: Lifetimes
  readonly nonce: string
  readonly counter: number
  /** `Site.tokenTag`. */
  readonly siteTag: string
  readonly address: Address
  /** 0 to 1, in thousandths. */
  readonly score: number
  /** The epoch of the store that redeems the token, unsigned 32 bits. */
  readonly storeEpoch: number
  readonly page?: Page | undefined
}

type TokenReading =
  | { readonly status: 'genuine'; readonly claims: TokenClaims }
  | typeof MALFORMED
  | typeof FORGED

const MALFORMED = { status: 'malformed' } as const
const FORGED = { status: 'forged' } as const

const LIFETIME_BITS = 12
const LIFETIME_MASK = 0xfff
/** | version and key id 1 | lifetimes 3 | claims |, of the token that is minted or read. Each call overwrites it, and `message`. */
const sealed = Buffer.alloc(CLAIMS_OFFSET + CLAIMS_BYTES)
const claims = sealed.subarray(CLAIMS_OFFSET)

export function mintToken(keyring: Keyring, token: TokenClaims): string {
  const key = keyring.signing
  const { message } = key.tokenMac // has room for the longest token (keyring.ts)
  const prefixEnd = writePrefix(message, token)
  sealed[0] = ((token.page === undefined ? VERSION : PAGE_VERSION) << 4) | key.kid
  writeUInt24(sealed, LIFETIMES_OFFSET, packLifetimes(token.lifetimes))
  writeText(claims, 0, token.siteTag, SITE_TAG_BYTES)
  writeText(claims, ADDRESS_OFFSET, token.address, ADDRESS_BYTES)
  claims.writeUInt16BE(Math.round(token.score * SCORE_SCALE), SCORE_OFFSET)
  claims.writeUInt32BE(token.storeEpoch, STORE_EPOCH_OFFSET)
  applyKeyStream(key, prefixEnd)
  message[prefixEnd] = DELIMITER
  let sealedEnd = prefixEnd + 1 + message.write(sealed.toString('base64url'), prefixEnd + 1, 'latin1')
  if (token.page !== undefined) sealedEnd += message.write(pageText(token.page), sealedEnd, 'latin1')
  message[sealedEnd] = DELIMITER
  const end = sealedEnd + 1
  return message.toString('latin1', 0, end) + key.tokenMac.sign(end)
}

function packLifetimes({ challengeLifetimeMs, tokenLifetimeMs }: Lifetimes): number {
  return ((challengeLifetimeMs / 1000) << LIFETIME_BITS) | (tokenLifetimeMs / 1000)
}

function unpackLifetimes(packed: number): Lifetimes {
  return {
    challengeLifetimeMs: (packed >> LIFETIME_BITS) * 1000,
    tokenLifetimeMs: (packed & LIFETIME_MASK) * 1000,
  }
}

/** `<issuedAtMs>|<nonce>|<counter>`; returns its length. */
function writePrefix(bytes: Buffer, token: TokenClaims): number {
  let end = writeDecimal(bytes, 0, token.issuedAtMs)
  bytes[end++] = DELIMITER
  end += bytes.write(token.nonce, end, 'latin1')
  bytes[end++] = DELIMITER
  return writeDecimal(bytes, end, token.counter)
}

export function readToken(keyring: Keyring, token: string): TokenReading {
  const match = SHAPE.exec(token)
  if (match === null) return MALFORMED
  const [, issuedAtMs, nonce, counter, sealedText, hmac] = match as unknown as [string, ...string[]]
  const hasPage = sealedText!.length > SEALED_CHARACTERS
  sealed.write(sealedText!.slice(0, SEALED_CHARACTERS), 'base64url')
  if (sealed[0]! >> 4 !== (hasPage ? PAGE_VERSION : VERSION)) return MALFORMED
  const text = token.slice(0, token.length - HMAC_CHARACTERS)
  for (const key of keyring.candidates(sealed[0]! & 0x0f)) {
    if (!equalInConstantTime(tokenHmac(key, text), hmac!, HMAC_CHARACTERS)) continue
    const prefixEnd = text.length - sealedText!.length - 2 // `|<sealed>|` follows it
    applyKeyStream(key, prefixEnd)
    const read = {
      issuedAtMs: Number(issuedAtMs),
      lifetimes: unpackLifetimes(readUInt24(sealed, LIFETIMES_OFFSET)),
      nonce: nonce!,
      counter: Number(counter),
      siteTag: claims.toString('latin1', 0, SITE_TAG_BYTES),
      address: claims.toString('latin1', ADDRESS_OFFSET, SCORE_OFFSET),
      score: claims.readUInt16BE(SCORE_OFFSET) / SCORE_SCALE,
      storeEpoch: claims.readUInt32BE(STORE_EPOCH_OFFSET),
      page: hasPage ? readPage(sealedText!.slice(SEALED_CHARACTERS)) : undefined,
    }
    return { status: 'genuine', claims: read }
  }
  return FORGED
}

/** The nonce that a text states, though the token may be forged. undefined if the text has no token's form. */
export function statedNonce(token: string): string | undefined {
  return SHAPE.exec(token)?.[2]
}

function tokenHmac(key: SigningKey, text: string): string {
  key.tokenMac.message.write(text, 0, text.length, 'latin1')
  return key.tokenMac.sign(text.length)
}

/** Encrypts or decrypts `claims`. The MAC's message starts with the prefix. */
function applyKeyStream(key: SigningKey, prefixLength: number): void {
  key.tokenMac.message.copy(key.tokenStream.message, 0, 0, prefixLength)
  const stream = key.tokenStream.innerHash(prefixLength)
  for (let index = 0; index < CLAIMS_BYTES; index++) claims[index]! ^= stream.charCodeAt(index)
}
