/** A store under test with a clock that the test sets, and its operations as promises. */

import type { TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { parseRedisUrl } from '../../src/config/redis.ts'
import { ownerMeter, shardKey, siteMeter } from '../../src/domain/address-tags.ts'
import { fnv1a } from '../../src/domain/bytes.ts'
import { shardTags, slotOf } from '../../src/store/client/connection.ts'
import { StoreClient, type StoreClientOptions } from '../../src/store/client/store-client.ts'
import type { StoreServer } from '../../src/store/embedded/server.ts'
import type {
  ChallengeAdmission,
  ChallengeRequest,
  Metering,
  RedemptionAdmission,
  RedemptionRequest,
  SolutionAdmission,
  SolutionRequest,
} from '../../src/store/store.ts'
import { openEmbedded, serveStore } from '../harness/embedded.ts'
import { type Engine, RedisServer } from '../harness/redis.ts'
import { temporaryDir } from '../harness/temporary.ts'

/** The site of requests that name no other. */
export const SITE = 'site_0000000000000000000000'

/** How many shards a store has on a Cluster, unless a test says otherwise. */
export const SHARDS = 16

/** The slot of a key's shard in a Cluster. */
export const slotOfShard = (key: string) =>
  slotOf(`{${shardTags({ isCluster: true }, SHARDS)[fnv1a(key) % SHARDS]}}`)
/** The slot of the redemptions at SITE. */
export const SITE_SLOT = slotOfShard(SITE)

export async function openRedis(
  url: string,
  options: Partial<StoreClientOptions> = {},
): Promise<StoreClient> {
  // Long enough for a busy machine. Tests about deadlines give their own.
  const usual = { keyPrefix: 'test', clusterShards: SHARDS, deadlineMs: 5000, openTimeoutMs: 60_000 }
  const store = new StoreClient({ target: parseRedisUrl(url)!, ...usual, ...options })
  await store.open().catch(error => store.close().then(() => Promise.reject(error))) // else its probes keep the test alive
  return store
}

/** Closed when the test ends. */
export async function openRedisFor(t: TestContext, url: string, options: Partial<StoreClientOptions> = {}) {
  const store = await openRedis(url, options)
  t.after(() => store.close())
  return store
}

/** A store on a server of its own, and a client of that; stopped when the test ends. */
export async function startRedis(
  t: TestContext,
  options: Partial<StoreClientOptions> = {},
  serverArgs: readonly string[] = [],
) {
  const server = await RedisServer.start(serverArgs)
  const store = await openRedisFor(t, server.url, options)
  const admin = new Redis(server.clientOptions)
  t.after(() => {
    admin.disconnect()
    return server.stop()
  })
  return { server, store, admin }
}

export interface TestStore {
  readonly store: StoreClient
  /** A second client of the same memory, as another worker would be. */
  readonly other: StoreClient
  /** Virtual Unix time in milliseconds, shared by both. */
  readonly clock: { now: number }
  /** Seconds for which a meter is kept from now on (Redis counts real ones); not known of a Cluster. */
  expires?(name: string): Promise<number>
  close(): Promise<void>
}

export type StoreMaker = () => Promise<TestStore>

/**
 * @param open opens the memory, each time as another client
 * @param end takes the memory away
 */
export async function openTwice(
  open: (clock: TestStore['clock']) => StoreClient | Promise<StoreClient>,
  end: () => void | Promise<void>,
  clock = { now: Date.UTC(2026, 0, 1) },
): Promise<TestStore> {
  const [store, other] = await Promise.all([open(clock), open(clock)])
  const close = async () => {
    await Promise.all([store.close(), other.close()])
    await end()
  }
  return { store, other, clock, close }
}

/** A store process' server in this process, and two clients of it. */
export async function openEmbeddedTwice(): Promise<TestStore & { readonly server: StoreServer }> {
  const dataDir = temporaryDir('embedded')
  const clock = { now: Date.UTC(2026, 0, 1) }
  const now = () => clock.now
  const server = await serveStore(dataDir, { clocks: { monotonicMs: now, wallMs: now } })
  const open = () => openEmbedded(dataDir, { clock: now })
  const opened = await openTwice(open, () => server.close({ saves: false }), clock)
  return { ...opened, server }
}

/** A Redis server, and two clients of it. */
export async function openRedisTwice(engine: Engine = 'redis'): Promise<TestStore> {
  const server = await RedisServer.start([], { engine })
  const open = (clock: TestStore['clock']) => openRedis(server.url, { clock: () => clock.now })
  const opened = await openTwice(open, () => server.stop())
  return { ...opened, expires: async name => Number(await server.ask('ttl', `test:{0}:${name}`)) }
}

type Requests = Pick<StoreClient, 'requests'>

/** An operation as a promise; what a request does not say is as usual. */
function operation<Request, Admission>(
  usual: Request,
  ask: (requests: StoreClient['requests'], request: Request, resolve: (admission: Admission) => void) => void,
) {
  return ({ requests }: Requests, request: Partial<Request> = {}) =>
    new Promise<Admission>(resolve => ask(requests, { ...usual, ...request }, resolve))
}

const VISIT = { addressKey: '0a000001', siteTag: 1, metering: undefined }
export const challengeOn = operation<ChallengeRequest, ChallengeAdmission>(
  { ...VISIT, addressLimit: 60, siteLimit: 30 },
  (requests, request, resolve) => requests.admitChallenge(request, resolve),
)
export const solutionOn = operation<SolutionRequest, SolutionAdmission>(
  { ...VISIT, addressLimit: 30, siteLimit: 20, failed: false, spend: undefined },
  (requests, request, resolve) => requests.admitSolution(request, resolve),
)
const apiKey = { id: 'key00001', limit: 200, siteKey: SITE }
export const redemptionOn = operation<RedemptionRequest, RedemptionAdmission>(
  { callerKey: '7f000001', callerLimit: 100, apiKey, redeem: undefined },
  (requests, request, resolve) => requests.redeemToken(request, resolve),
)

/** What became of the solution's nonce, or why it was not admitted. */
export async function nonceOn(store: Requests, request: Partial<SolutionRequest>) {
  const admission = await solutionOn(store, request)
  return admission.status === 'admitted' ? admission.nonce : admission.status
}

/** What became of the token, or why it was not admitted. Each caller is another, so that none is limited. */
export async function tokenOn(store: Requests, request: Partial<RedemptionRequest>) {
  const admission = await redemptionOn(store, { callerKey: freshKey(), ...request })
  if (admission.status === 'limited' && admission.isJunk) return 'limited as junk'
  return admission.status === 'admitted' ? admission.token : admission.status
}

let next = 0

/** An address key that no earlier test used, of another network each, spread over shards (layout: src/domain/address-tags.ts). */
export function freshKey(): string {
  next++
  // An odd factor gives each number below 2^24 another one, and scatters them.
  return `${((next * 0x9e3779) & 0xffffff).toString(16).padStart(6, '0')}ownr01`
}

/** The meters of an address, in its shard. */
export function meteringOf(addressKey: string, siteKey = SITE): Metering {
  const meters = [siteMeter(siteKey), ownerMeter(addressKey, 'sha256'), `e:${shardKey(addressKey)}00wide`]
  return { firstProofs: ['e:born', 'e:born:test'], meters, free: [120, 80, 240], counts: true }
}

/** A nonce whose issue time is about `now`. The store trusts its caller that it is genuine. */
export function freshNonce(now: number): string {
  next++
  const high = Math.floor((now - Date.UTC(2024, 0, 1)) / 512)
  return high.toString(16).padStart(8, '0') + next.toString(16).padStart(24, '0')
}

/** What spends a nonce that has just been issued to an address, and lives for two minutes. */
export function spendable({ requests }: Requests, addressKey: string, nowMs = Date.now()) {
  const storeEpoch = requests.epochOf(addressKey)!
  return { nonce: freshNonce(nowMs), storeEpoch, expiresAtMs: nowMs + 120_000 }
}

/** What redeems a token of SITE that has just been issued and lives for five minutes. */
export function redeemable({ requests }: Requests, nowMs = Date.now()) {
  const storeEpoch = requests.epochOf(SITE)!
  return { nonce: freshNonce(nowMs), storeEpoch, expiresAtMs: nowMs + 300_000, claim: '' }
}

export const mapOf = (values: Readonly<Record<string, number>>): Map<string, number> =>
  new Map(Object.entries(values))
