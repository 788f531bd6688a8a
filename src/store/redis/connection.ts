/** A connection to Redis: standalone, Sentinel or Cluster, behind the few calls that the store needs. */

import { isIP } from 'node:net'
import { type ConnectionOptions, createSecureContext } from 'node:tls'
import { Cluster, Command, Redis, type RedisOptions } from 'ioredis'
import { QuietConnector, QuietSentinelConnector } from './connectors.ts'
import type { RedisTarget } from './target.ts'

/**
 * A class of ioredis extends String, after which V8 keeps String.prototype as a dictionary. No string method is
 * inlined any more in this process: `charCodeAt` takes 8.8 ns instead of 1.8, some 4 us of a /verify-token. Loading a method
 * through an heir makes the prototype fast again; V8 does it after some hundred loads.
 */
const heir: string = Object.create(String.prototype)
for (let loads = 0; loads < 1000; loads++) void heir.charCodeAt

/** Makes sockets; ioredis gives it its own options. */
type ConnectorConstructor = NonNullable<RedisOptions['Connector']>

/** A connection to one server. What was learnt over it holds for this object only. */
export type Place = Redis

export interface Connection {
  readonly isCluster: boolean
  /** Where calls for a hash slot go now; undefined: nowhere, or nobody knows. */
  placeOf(slot: number): Place | undefined
  /** To this place and no other: redirections of a Cluster come back as errors. */
  sendTo(place: Place, command: Command): Promise<unknown>
  /** To wherever its keys live; redirections are followed, nothing else is sent again. */
  send(command: Command): Promise<unknown>
  /** Learns where a key of a Cluster lives now, which `placeOf` then tells. */
  locate(key: string): Promise<void>
  /** Told when it may be worth trying. */
  onReady(listener: () => void): void
  onLost(listener: (place: Place) => void): void
  /** Gives up a place that is silent; a new connection is made. */
  drop(place: Place): void
  /** Gives up a connection for this slot that has been in the making for too long. */
  unstick(slot: number): void
  /** The last connection error since the connection was last ready: one line without credentials. */
  lastError(): string | undefined
  close(): void
}

const RECONNECT_MS_MAX = 200
const SENTINEL_MS_MAX = 2000
/** Redis tells when it will have read its file, and is often early. */
const LOADING_MS = 100
/** How long a connection that is given up may take to end. */
const DISCONNECT_MS = 500

/**
 * How long a connection may be silent, or in the making (a server may accept it and then say nothing), before another is
 * tried: several round trips that a call may each take for all its time. What swallowed the bytes of the first
 * need not swallow those of the next, so this bounds how soon a Redis that is back is found.
 */
export function patienceMs(deadlineMs: number): number {
  return Math.max(500, 4 * deadlineMs)
}

/**
 * Settings, and why:
 * - no offline queue, no resends, no retries: a caller is told at once, and no script runs twice;
 * - an error READONLY means that this server is no longer the primary: reconnect, but do not resend.
 */
const CLIENT_OPTIONS = {
  protocol: 2,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  disconnectTimeout: DISCONNECT_MS,
  maxLoadingRetryTime: LOADING_MS,
  keepAlive: 10_000,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, RECONNECT_MS_MAX),
  reconnectOnError: (error: Error) => (error.message.includes('READONLY') ? 1 : false),
  disableClientInfo: true,
} as const

/** @param deadlineMs of a call */
export function connect(target: RedisTarget, deadlineMs: number): Connection {
  const patience = patienceMs(deadlineMs)
  return target.kind === 'cluster' ? connectCluster(target, patience) : connectRedis(target, patience)
}

function connectRedis(target: RedisTarget, patience: number): Connection {
  const options = dataOptions(target, patience)
  const client = new Redis(
    target.kind === 'sentinel' ? sentinelOptions(target, options) : { ...options, ...target.nodes[0]! },
  )
  const isStuck = stuckCheck(patience)
  let isClosed = false
  // ioredis gives up for good if it is interrupted while it asks the Sentinels.
  client.on('end', () => {
    if (!isClosed) setTimeout(() => !isClosed && client.connect().catch(() => {}), RECONNECT_MS_MAX).unref()
  })
  return {
    isCluster: false,
    placeOf: () => (client.status === 'ready' ? client : undefined),
    sendTo: (place, command) => place.sendCommand(command) as Promise<unknown>,
    send: command => client.sendCommand(command) as Promise<unknown>,
    locate: async () => {},
    onReady: listener => client.on('ready', listener),
    onLost: listener => client.on('close', () => listener(client)),
    drop: place => place.disconnect(true),
    // Not while it asks the Sentinels: that has deadlines of its own, and must not be interrupted.
    unstick: () => {
      if (client.status === 'connect' && isStuck(client.stream)) client.disconnect(true)
    },
    lastError: lastErrorOf(client),
    close: () => {
      isClosed = true
      client.disconnect()
    },
  }
}

function connectCluster(target: RedisTarget, patience: number): Connection {
  const cluster = new Cluster([...target.nodes], {
    enableOfflineQueue: false,
    clusterRetryStrategy: (attempt: number) => Math.min(50 * attempt, RECONNECT_MS_MAX),
    retryDelayOnFailover: 0,
    slotsRefreshTimeout: 1000,
    slotsRefreshInterval: 5000,
    // A certificate is for the name, so that is what has to be connected to.
    ...(target.tls === undefined
      ? {}
      : { dnsLookup: (name: string, done: (error: null, address: string) => void) => done(null, name) }),
    redisOptions: dataOptions(target, patience),
  })
  const isStuck = stuckCheck(patience)
  const dropped = new WeakSet<Place>()
  const nodeOf = (slot: number): Redis | undefined => {
    const key = cluster.slots[slot]?.[0]
    if (key === undefined || cluster.status !== 'ready') return undefined
    return cluster.nodes('all').find(({ options }) => `${options.host}:${options.port}` === key)
  }
  return {
    isCluster: true,
    placeOf: slot => {
      const node = nodeOf(slot)
      // One that waits connects when it is first sent something.
      return node?.status === 'ready' || node?.status === 'wait' ? node : undefined
    },
    sendTo: (place, command) => place.sendCommand(command) as Promise<unknown>,
    send: command => cluster.sendCommand(command) as Promise<unknown>,
    locate: async key => {
      if (cluster.status === 'ready') await cluster.sendCommand(new Command('get', [key]))
    },
    onReady: listener => cluster.on('ready', listener),
    onLost: listener => cluster.on('-node', (node: Redis) => listener(node)),
    // Many shards may have this place, and each call adds a listener.
    drop: place => {
      if (!dropped.has(place)) place.disconnect()
      dropped.add(place)
    },
    unstick: slot => {
      const node = nodeOf(slot)
      if (node !== undefined && isStuck(node)) node.disconnect()
    },
    lastError: lastErrorOf(cluster),
    close: () => cluster.disconnect(),
  }
}

/**
 * Whether this attempt was first seen longer ago than a connection may take, in milliseconds; then not before it has had
 * that time once more, since ending it takes ioredis a while, in which each call adds a listener.
 */
function stuckCheck(patience: number): (attempt: object) => boolean {
  const seenAtMs = new WeakMap<object, number>()
  return attempt => {
    const nowMs = performance.now()
    const sinceMs = seenAtMs.get(attempt)
    const isStuck = sinceMs !== undefined && nowMs - sinceMs > patience
    if (sinceMs === undefined || isStuck) seenAtMs.set(attempt, nowMs)
    return isStuck
  }
}

function dataOptions(target: RedisTarget, connectTimeout: number) {
  return {
    ...CLIENT_OPTIONS,
    Connector: (target.kind === 'sentinel' ? QuietSentinelConnector : QuietConnector) as ConnectorConstructor,
    connectTimeout,
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
    db: target.db,
    ...(target.tls === undefined ? {} : { tls: tlsOptions(target) }),
  }
}

function sentinelOptions(target: RedisTarget, options: ReturnType<typeof dataOptions>) {
  const { sentinelUsername, sentinelPassword } = target
  return {
    ...options,
    sentinels: [...target.nodes],
    name: target.primaryName!,
    sentinelCommandTimeout: SENTINEL_MS_MAX,
    ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(target.tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(target) }),
  }
}

function tlsOptions(target: RedisTarget): ConnectionOptions {
  const { ca, cert, key, name } = target.tls!
  const [node] = target.nodes
  // Where only one host is meant, servers that hold several certificates are told which.
  const host = target.kind === 'standalone' && isIP(node!.host) === 0 ? node!.host : undefined
  const servername = name ?? host
  return {
    // Made once: to read certificates takes milliseconds.
    secureContext: createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    }),
    ...(servername === undefined ? {} : { servername }),
  }
}

function lastErrorOf(client: Redis | Cluster): () => string | undefined {
  let last: string | undefined
  const note = (error: Error) => {
    const text = briefError(error)
    // That no Sentinel helped comes after what each of them said.
    if (last === undefined || !text.startsWith('All sentinels')) last = text
  }
  client.on('error', note)
  client.on('node error', note)
  client.on('sentinelError', note)
  client.on('ready', () => {
    last = undefined
  })
  return () => last
}

/** ioredis errors carry the command and its arguments, keys and tokens among them: only the message is passed on. */
function briefError(error: Error & { code?: string; lastNodeError?: Error }): string {
  const cause = error.lastNodeError ?? error
  const [line = ''] = cause.message.trim().split('\n')
  // A server that does not know a command repeats its arguments, a password among them.
  return line.replace(/,? with args beginning with:.*$/, '') || error.code || 'connection failed'
}
