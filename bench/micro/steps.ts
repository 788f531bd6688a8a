/**
 * The steps of the verify path, built from the compiled modules of one tree: this one for `npm run bench`, two for
 * `npm run bench:compare`. Inputs come to each step as the service brings them: a solution is parsed from a body of the widget,
 * claims are a literal, counters have 16 digits. Each step checks its results, so that a module whose arguments have changed
 * does not look fast.
 */

import { createHash, hash } from 'node:crypto'
import { PLAIN_ENVIRONMENT } from '../../src/domain/score.ts'
import { DIFFICULTY_MIN, FIRST_COUNTER, type PuzzleName, proofInput } from '../../src/protocol/proof.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { randomHex, seededRandom } from '../../test/harness/values.ts'
import { plainVerification } from './plain.ts'
import { isText, over, type Work } from './work.ts'

/** The modules that steps are made of, by their paths below src/. */
interface Modules {
  'addresses/address': typeof import('../../src/addresses/address.ts')
  'addresses/forwarded-for': typeof import('../../src/addresses/forwarded-for.ts')
  'domain/address-log': typeof import('../../src/domain/address-log.ts')
  'domain/keyring': typeof import('../../src/domain/keyring.ts')
  'domain/nonce': typeof import('../../src/domain/nonce.ts')
  'domain/pow': typeof import('../../src/domain/pow.ts')
  'domain/score': typeof import('../../src/domain/score.ts')
  'domain/site': typeof import('../../src/domain/site.ts')
  'domain/token': typeof import('../../src/domain/token.ts')
  'http/schemas': typeof import('../../src/http/schemas.ts')
}
const DOMAIN_MODULES = ['address-log', 'keyring', 'nonce', 'pow', 'score', 'site', 'token'] as const
export const MODULES: readonly (keyof Modules)[] = [
  'addresses/address',
  'addresses/forwarded-for',
  ...DOMAIN_MODULES.map(name => `domain/${name}` as const),
  'http/schemas',
]

/** Loads a compiled module of the tree. Throws if the tree lacks it. */
export type Load = <Path extends keyof Modules>(path: Path) => Promise<Modules[Path]>

interface Step {
  readonly name: string
  /** Bytes of garbage that it may make: those measured and 60, since processes differ by up to 40. Without it, node:crypto makes the most. */
  readonly garbageMax?: number
  readonly prepare: (load: Load) => Promise<Work>
}

export const PROOF = 'proof check'
/** What node:crypto itself takes and makes of garbage is not the proof check's. */
export const HASH = "proof check, node's hash alone"
export const HASHWX = 'proof check, HashWX'
export const WHOLE = 'whole verification, no store'
export const PLAIN = 'whole verification, plain node:crypto'
/** What a whole verification consists of. */
export const PARTS_OF_WHOLE = ['parse a /verify body', 'read a nonce', PROOF, 'score', 'mint a token']

/** Different inputs of each step, so that neither caches nor V8 get used to a single one; solving so many takes milliseconds. */
const INPUTS = 256
/** All that is judged by a clock is judged at this time, so that runs are alike. */
const NOW_MS = Date.UTC(2026, 0, 1, 12)
/** What nonces ask for; the inputs are solved for fewer bits, quickly. A check costs the same whatever the bits. */
const DIFFICULTY = DIFFICULTY_MIN
const SOLVED_BITS = 6
/** No input's digest starts with so many zero bits, so a right check refuses them all. */
const TOO_MANY_BITS = 32
const THRESHOLD = 0.5
const STORE_EPOCH = 7
const LIFETIMES = { challengeLifetimeMs: 120_000, tokenLifetimeMs: 300_000 }
const SITE_KEY = 'site_0123456789ABCDEFabcdef'
/** `Site.tokenTag`: 10 one-byte characters. */
const SITE_TAG = '0123456789'
const SECRET = 'a secret for the bench, long enough to be accepted'
const JSON_TYPE = 'application/json'

/** The same INPUTS visitors in every process, each with a challenge and what the browser posts. Three of four have IPv4. */
async function crowd(load: Load) {
  const { Keyring } = await load('domain/keyring')
  const { parseAddress } = await load('addresses/address')
  const { mintNonce } = await load('domain/nonce')
  const { parseSolution } = await load('http/schemas')
  const keyring = new Keyring([SECRET])
  const bindingOf = ({ address }: { readonly address: string }) => {
    return { siteKey: SITE_KEY, storeEpoch: STORE_EPOCH, lifetimes: LIFETIMES, address }
  }
  const random = seededRandom(0x706f7767)
  const visits = Array.from({ length: INPUTS }, (_, index) => {
    const addressText = index % 4 === 3 ? v6Text(random) : v4Text(random)
    const address = parseAddress(addressText)!
    const issuedAtMs = NOW_MS - 200 - (random() % 5000)
    const randomBits = random() % 2 ** 14
    const terms = { issuedAtMs, difficulty: DIFFICULTY }
    const nonce = mintNonce(keyring, terms, bindingOf({ address }), randomBits)
    const body = Buffer.from(JSON.stringify(solutionOf(random, nonce)))
    const parsed = parseSolution(body, JSON_TYPE)
    if (!parsed.ok) throw new Error('a body of the widget is refused')
    return { addressText, address, issuedAtMs, randomBits, body, solution: parsed.body }
  })
  return { visits, bindingOf, keyring }
}

/** Makes a solution as src/widget/flow.ts does. */
function solutionOf(random: () => number, nonce: string): Solution {
  let counter = FIRST_COUNTER + (random() % 2 ** 31)
  // The first SOLVED_BITS bits of the digest are zero if its first byte, without the others, is.
  while (createHash('sha256').update(proofInput(nonce, counter)).digest()[0]! >> (8 - SOLVED_BITS) > 0)
    counter++
  return {
    nonce,
    counter,
    solveTimeMs: 100 + (random() % 100),
    fingerprintHash: randomHex(random, 64),
    environment: { ...PLAIN_ENVIRONMENT, swiftShader: random() % 16 === 0, noPlugins: random() % 8 === 0 },
  }
}

function v4Text(random: () => number): string {
  const bits = random()
  return [203, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255].join('.')
}

function v6Text(random: () => number): string {
  const group = () => (random() & 0xffff).toString(16)
  return `2001:db8:${group()}:${group()}::${group()}:${group()}`
}

async function parsing(load: Load): Promise<Work> {
  const { parseSolution } = await load('http/schemas')
  const { visits } = await crowd(load)
  for (const { body, solution } of visits)
    if (JSON.stringify(solution) !== body.toString()) throw new Error('a body is parsed as something else')
  return over(visits, ({ body }) => parseSolution(body, JSON_TYPE).ok)
}

async function nonceMinting(load: Load): Promise<Work> {
  const { mintNonce } = await load('domain/nonce')
  const { visits, keyring, bindingOf } = await crowd(load)
  return over(visits, visit => {
    // The random bits are given: the service takes them from randomInt, which draws 6 KiB at a time.
    const terms = { issuedAtMs: visit.issuedAtMs, difficulty: DIFFICULTY }
    return isText(mintNonce(keyring, terms, bindingOf(visit), visit.randomBits))
  })
}

async function nonceReading(load: Load): Promise<Work> {
  const { readNonce } = await load('domain/nonce')
  const { visits, keyring, bindingOf } = await crowd(load)
  const [one, another] = [visits[0]!, visits[1]!]
  if (readNonce(keyring, one.solution.nonce, bindingOf(another), NOW_MS).status === 'genuine')
    throw new Error("a nonce of another address is taken for this one's")
  return over(visits, visit => {
    return readNonce(keyring, visit.solution.nonce, bindingOf(visit), NOW_MS).status === 'genuine'
  })
}

async function proofChecking(load: Load, bits = SOLVED_BITS, puzzle?: PuzzleName): Promise<Work> {
  const { checkProof } = await load('domain/pow')
  const { visits } = await crowd(load)
  // A list of mixed values, because V8 boxes a number of 16 digits for every call, and that is the caller's garbage.
  const pairs = visits.map(({ solution: { nonce, counter } }) => [nonce, counter] as const)
  if (pairs.some(([nonce, counter]) => checkProof(nonce, counter, TOO_MANY_BITS, puzzle)))
    throw new Error('a proof of too few bits is accepted')
  return over(pairs, ([nonce, counter]) => checkProof(nonce, counter, bits, puzzle))
}

/** Solving HashWX takes long, so 0 bits are asked for: a check costs the same whatever the bits. */
const hashwxChecking = (load: Load) => proofChecking(load, 0, 'hashwx')

async function hashing(load: Load): Promise<Work> {
  const { visits } = await crowd(load)
  const inputs = visits.map(({ solution: { nonce, counter } }) => Buffer.from(proofInput(nonce, counter)))
  return over(inputs, input => hash('sha256', input, 'binary').length === 32)
}

async function scoring(load: Load): Promise<Work> {
  const { scoreOf } = await load('domain/score')
  const { visits } = await crowd(load)
  return over(visits, ({ solution, issuedAtMs }) => {
    return scoreOf(signalsOf(solution, issuedAtMs)).score >= THRESHOLD
  })
}

function signalsOf({ environment, solveTimeMs }: Solution, issuedAtMs: number) {
  const elapsedMs = NOW_MS - issuedAtMs
  return { environment, solveTimeMs, elapsedMs, difficulty: DIFFICULTY, addressFailures: 0 }
}

/** A literal, as src/endpoints/verify.ts has it: an object spread in its place takes 1.8 KB and as long as the rest of the minting. */
function claimsOf({ nonce, counter }: Solution, address: string, score: number) {
  return {
    issuedAtMs: NOW_MS,
    lifetimes: LIFETIMES,
    nonce,
    counter,
    siteTag: SITE_TAG,
    address,
    score,
    storeEpoch: STORE_EPOCH,
    page: undefined,
  }
}

async function tokens(load: Load) {
  const { mintToken, readToken } = await load('domain/token')
  const made = await crowd(load)
  const { visits, keyring } = made
  const minted = visits.map(({ solution, address }) => mintToken(keyring, claimsOf(solution, address, 0.9)))
  for (const [index, token] of minted.entries()) {
    const reading = readToken(keyring, token)
    const { nonce, counter } = visits[index]!.solution
    if (reading.status !== 'genuine' || reading.claims.nonce !== nonce || reading.claims.counter !== counter)
      throw new Error('a token does not say what it was made of')
  }
  return { ...made, minted, mintToken, readToken }
}

async function tokenMinting(load: Load): Promise<Work> {
  const { visits, keyring, mintToken } = await tokens(load)
  return over(visits, ({ solution, address }) => isText(mintToken(keyring, claimsOf(solution, address, 0.9))))
}

async function tokenReading(load: Load): Promise<Work> {
  const { keyring, minted, readToken } = await tokens(load)
  return over(minted, token => readToken(keyring, token).status === 'genuine')
}

async function redemptionParsing(load: Load): Promise<Work> {
  const { parseRedemption } = await load('http/schemas')
  const { visits, minted } = await tokens(load)
  const rest = { expectedIp: visits[0]!.addressText, idempotencyKey: '0f8fad5b-d9cb-469f-a165-70867728950e' }
  const bodies = minted.map(token => Buffer.from(JSON.stringify({ token, ...rest })))
  return over(bodies, body => parseRedemption(body, JSON_TYPE).ok)
}

async function wholeVerification(load: Load): Promise<Work> {
  const { parseSolution } = await load('http/schemas')
  const { readNonce } = await load('domain/nonce')
  const { checkProof } = await load('domain/pow')
  const { scoreOf } = await load('domain/score')
  const { visits, keyring, bindingOf, mintToken } = await tokens(load)
  return over(visits, visit => {
    const parsed = parseSolution(visit.body, JSON_TYPE)
    if (!parsed.ok) return false
    const solution = parsed.body
    const reading = readNonce(keyring, solution.nonce, bindingOf(visit), NOW_MS)
    if (reading.status !== 'genuine' || NOW_MS >= reading.issuedAtMs + LIFETIMES.challengeLifetimeMs)
      return false
    if (reading.difficulty !== DIFFICULTY) return false
    if (!checkProof(solution.nonce, solution.counter, SOLVED_BITS)) return false
    const { score } = scoreOf(signalsOf(solution, reading.issuedAtMs))
    return score >= THRESHOLD && isText(mintToken(keyring, claimsOf(solution, visit.address, score)))
  })
}

async function plainWhole(load: Load): Promise<Work> {
  const { visits } = await crowd(load)
  const { scoreOf } = await load('domain/score')
  const scored = (solution: Solution) => scoreOf(signalsOf(solution, NOW_MS - 1000)).score
  return plainVerification(visits, NOW_MS, SITE_KEY, SOLVED_BITS, scored)
}

/** The log's tag of a site is a number, unlike that of tokens (SITE_TAG). */
const LOG_REQUEST = { siteTag: 1, addressLimit: 30, siteLimit: 20 }

/** Charges a verification to the log of an address that had two in the last minute, on two sites. */
async function charging(load: Load): Promise<Work> {
  const { admitToLog, LogKind } = await load('domain/address-log')
  const random = seededRandom(11)
  const charge = (record: Buffer | undefined, atMs: number, siteTag: number) => {
    const decision = admitToLog(record, atMs, LogKind.verification, { ...LOG_REQUEST, siteTag })
    if (decision.status === 'limited') throw new Error('the log refuses what fits')
    return Buffer.from(decision.record)
  }
  const records = Array.from({ length: INPUTS }, () => {
    const first = charge(undefined, NOW_MS - 55_000 + (random() % 500), 1)
    return charge(first, NOW_MS - 27_500 + (random() % 500), 2)
  })
  return over(records, record => {
    return admitToLog(record, NOW_MS, LogKind.verification, LOG_REQUEST).status === 'admitted'
  })
}

async function forwarding(load: Load): Promise<Work> {
  const { AddressSet } = await load('addresses/address')
  const { forwardedAddress } = await load('addresses/forwarded-for')
  const { visits } = await crowd(load)
  const trusted = new AddressSet(['10.0.0.0/8', 'fd00::/8'])
  return over(visits, ({ addressText, address }) => forwardedAddress(addressText, trusted) === address)
}

async function keyChecking(load: Load): Promise<Work> {
  const { apiKeyId, apiKeySha256, isApiKeyOf, newApiKey } = await load('domain/site')
  const random = seededRandom(17)
  const keys = Array.from({ length: INPUTS }, () => {
    const key = newApiKey(Buffer.from(randomHex(random, 192), 'hex'))
    const [id, secretSha256] = [apiKeyId(key)!, apiKeySha256(key)]
    return { key, record: { id, siteKey: SITE_KEY, secretSha256, createdAt: NOW_MS, revokedAt: null } }
  })
  if (isApiKeyOf(keys[0]!.record, keys[1]!.key)) throw new Error('another key is accepted')
  return over(keys, ({ key, record }) => isApiKeyOf(record, key))
}

export const STEPS: readonly Step[] = [
  { name: WHOLE, garbageMax: 2440, prepare: wholeVerification },
  { name: PLAIN, prepare: plainWhole },
  { name: 'parse a /verify body', garbageMax: 930, prepare: parsing },
  { name: 'mint a nonce', garbageMax: 380, prepare: nonceMinting },
  { name: 'read a nonce', garbageMax: 340, prepare: nonceReading },
  { name: PROOF, prepare: proofChecking },
  { name: HASH, prepare: hashing },
  { name: HASHWX, prepare: hashwxChecking },
  { name: 'score', garbageMax: 300, prepare: scoring },
  { name: 'mint a token', garbageMax: 980, prepare: tokenMinting },
  { name: 'parse a /verify-token body', garbageMax: 820, prepare: redemptionParsing },
  { name: 'read a token', garbageMax: 1080, prepare: tokenReading },
  { name: 'sliding window, third request', garbageMax: 150, prepare: charging },
  { name: 'X-Forwarded-For, one proxy', garbageMax: 300, prepare: forwarding },
  { name: 'API key check', garbageMax: 180, prepare: keyChecking },
]
