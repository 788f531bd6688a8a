/** Starts the servers that are measured: the built service on any store, with one worker or more, and the bare server. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Keyring } from '../../src/domain/keyring.ts'
import { readToken } from '../../src/domain/token.ts'
import { createApiKey } from '../../src/sites/sites.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT, solve } from '../../test/harness/client.ts'
import type { Answer } from '../../test/harness/http.ts'
import type { RedisServer } from '../../test/harness/redis.ts'
import { RedisCluster } from '../../test/harness/redis-cluster.ts'
import {
  type StoreKind,
  TEST_SECRET,
  TestService,
  UNLIMITED,
  UNLIMITED_REDEMPTIONS,
} from '../../test/harness/service.ts'
import { childPids } from './processes.ts'
import type { TrafficTarget } from './traffic.ts'

/** `cluster`: a Redis Cluster of three primaries. */
export type ServiceKind = StoreKind | 'cluster'

export interface RunningServer {
  readonly port: number
  /** All processes of the server itself, the first worker first. */
  readonly ownPids: readonly number[]
  /** Its Redis servers; empty without Redis. */
  readonly redisPids: readonly number[]
  readonly redisPorts: readonly number[]
  stop(): Promise<void>
}

export interface RunningService extends RunningServer {
  readonly target: TrafficTarget
  readonly workerPids: readonly number[]
  /** Of the process that supervises the workers. */
  readonly primaryPid: number
  /** The service's settings, with which its store can be opened. */
  readonly env: Readonly<Record<string, string>>
}

/** A service at full load redeems for many customers. */
const API_KEYS = 1

/** By default one worker, whose CPU time is then that of the requests. */
function environment(isForwarded: boolean): Record<string, string> {
  return {
    POWGATE_WORKERS: '1',
    // What is measured is the store: an outage must show, and a pause of a busy machine must not become one.
    POWGATE_FAIL_OPEN: 'none',
    POWGATE_STORE_DEADLINE_MS: '2000',
    POWGATE_OVERLOAD_MS: '0',
    // Requests are built some time before they are sent.
    POWGATE_CHALLENGE_SECONDS: '600',
    ...UNLIMITED_REDEMPTIONS,
    ...(isForwarded ? { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8' } : UNLIMITED),
  }
}

/**
 * Starts the service from dist/ with a fresh store; a Redis or Redis Cluster of its own if that is the store.
 *
 * @param env settings besides those of a bench
 */
export async function startService(
  kind: ServiceKind,
  isForwarded: boolean,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningService> {
  const settings = { ...environment(isForwarded), ...env }
  if (kind === 'cluster') return await startOnCluster(settings)
  const service = await TestService.start(kind, settings)
  return await running(service, service.redis === undefined ? [] : [service.redis])
}

async function startOnCluster(settings: Record<string, string>): Promise<RunningService> {
  const cluster = await RedisCluster.start()
  try {
    // REDIS_URL says where its state is; the kind, whether it starts a Redis of its own.
    const service = await TestService.start('embedded', { ...settings, REDIS_URL: cluster.url })
    const started = await running(service, cluster.servers)
    return {
      ...started,
      target: { ...started.target, epochsOf: service.env },
      stop: async () => {
        try {
          await service.stop()
        } finally {
          await cluster.stop()
        }
      },
    }
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

/** @param redis the servers that hold its state */
async function running(
  service: TestService,
  redis: readonly Pick<RedisServer, 'pid' | 'port'>[],
): Promise<RunningService> {
  try {
    const workerPids = childPids(service.pid)
    const workers = Number(service.env.POWGATE_WORKERS)
    if (workerPids.length !== workers) throw new Error(`${workerPids.length} processes, ${workers} workers`)
    return {
      port: service.port,
      ownPids: [...workerPids, service.pid],
      workerPids,
      primaryPid: service.pid,
      redisPids: redis.map(({ pid }) => pid),
      redisPorts: redis.map(({ port }) => port),
      env: service.env,
      target: await prepare(service),
      stop: () => service.stop(),
    }
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** Makes a site and takes one visitor through the whole flow, which tells the store's epoch. */
async function prepare(service: TestService): Promise<TrafficTarget> {
  const { siteKey, apiKey } = await service.createSite({ difficulty: { base: 16, min: 16, max: 28 } })
  const apiKeys = [apiKey, ...(await moreApiKeys(service, siteKey, API_KEYS - 1))]
  const client = new Client(service.url)
  const challenge = good('/challenge', await client.challenge(siteKey))
  const { nonce, difficulty } = challenge.json
  const counter = solve(nonce, difficulty)
  const solution = { nonce, counter, fingerprintHash: FINGERPRINT, environment: HONEST_ENVIRONMENT }
  const verification = good('/verify', await client.verify(siteKey, solution))
  const { token } = verification.json
  good('/verify-token', await client.verifyToken(apiKey, { token }))
  const reading = readToken(new Keyring([TEST_SECRET]), token)
  if (reading.status !== 'genuine') throw new Error('the service signs with another secret')
  return { secret: TEST_SECRET, siteKey, apiKeys, storeEpoch: reading.claims.storeEpoch }
}

function good(path: string, answer: Answer): Answer {
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`)
  return answer
}

async function moreApiKeys(service: TestService, siteKey: string, count: number): Promise<string[]> {
  const store = await service.openSites()
  try {
    const apiKeys: string[] = []
    while (apiKeys.length < count) apiKeys.push((await createApiKey(store, siteKey)).apiKey)
    return apiKeys
  } finally {
    await store.close()
  }
}

const BARE = new URL('./bare.ts', import.meta.url).pathname

export async function startBare(answerBytes: number): Promise<RunningServer> {
  const child = fork(BARE, [String(answerBytes)])
  const ended = once(child, 'exit')
  const port = await Promise.race([
    once(child, 'message').then(([port]) => port as number),
    ended.then(([code]) => Promise.reject(new Error(`the bare server ended with ${code}`))),
  ])
  return {
    port,
    ownPids: [child.pid!],
    redisPids: [],
    redisPorts: [],
    stop: async () => {
      child.kill()
      await ended
    },
  }
}
