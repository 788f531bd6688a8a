/**
 * Connects by ioredis, without its queue and retries, to Redis, Sentinels, a Cluster or the store process' socket. Also spreads shards
 * evenly over a Cluster's slots, and tells which shard has a key.
 */

import { isIP } from 'node:net'
import { type ConnectionOptions, createSecureContext } from 'node:tls'
import type { RedisTarget } from '../../config/redis.ts'
import { shardKey } from '../../domain/address-tags.ts'
import { fnv1a } from '../../domain/bytes.ts'
import { isSiteKey } from '../../domain/site.ts'
import { evalScript, type Script } from '../redis/scripts.ts'
import {
  Cluster,
  Command,
  ExplainingConnector,
  ExplainingSentinelConnector,
  mendSlotQueries,
  Redis,
} from './ioredis.ts'

export const CLUSTER_SLOTS = 16384

/** One connection: a Cluster's redirections come back as errors. */
export type Server = Redis

export type Ask = (name: string, ...args: string[]) => Promise<unknown>

export interface Connection extends Link {
  /** Follows a Cluster's redirections, resends nothing else, and rejects at the deadline. */
  readonly ask: Ask
  /** Does the same, and gives a reply as a Buffer. */
  readonly askBytes: Ask
  /** Runs a script in the same way. @param what is called so in the error at the deadline */
  run(script: Script, keys: readonly string[], values: readonly string[], what: string): Promise<unknown>
}

/** What is done differently on a Cluster and on a single server. */
interface Link {
  readonly isCluster: boolean
  /** undefined if not known, or not connected. */
  serverOf(slot: number): Server | undefined
  send(command: Command): Promise<unknown>
  /** Sends a command, any would do, because its redirection makes ioredis ask which server has a key, so that `serverOf` knows. */
  locate(key: string): Promise<void>
  onReady(listener: () => void): void
  onLost(listener: (server: Server) => void): void
  /** Replaces a silent connection. */
  drop(server: Server): void
  /** Ends a connection attempt that takes too long. Called while `serverOf` gives none. */
  endIfStuck(slot: number): void
  /** The last error since the connection was ready. It contains no credentials. */
  lastError(): string | undefined
  /** The last error of the slot's server, else `cause`; on a Cluster with the server's address. */
  readonly causeAt: (slot: number, cause: string) => string
  close(): void
}

const RECONNECT_MS_MAX = 200
const SENTINEL_MS_MAX = 2000
/** The pause between questions while Redis loads its file: often it is ready sooner than it estimates. */
const LOADING_MS = 100

/** A connection may be silent or incomplete for this long before it is replaced: several slow round trips. */
export function silenceMsMax(deadlineMs: number): number {
  return Math.max(500, 4 * deadlineMs)
}

/** No queue, resends or retries: a call fails at once, and no script runs twice. */
const CLIENT_OPTIONS = {
  protocol: 2,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  disconnectTimeout: 500, // then ioredis destroys a socket that does not close
  maxLoadingRetryTime: LOADING_MS,
  keepAlive: 10_000,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, RECONNECT_MS_MAX),
  // The server is no longer the primary: 1 reconnects, and 2 would also resend the command.
  reconnectOnError: (error: Error) => (error.message.includes('READONLY') ? 1 : false),
  disableClientInfo: true,
} as const

export function connect(target: RedisTarget, deadlineMs: number): Connection {
  const silenceMs = silenceMsMax(deadlineMs)
  const link = target.kind === 'cluster' ? connectCluster(target, silenceMs) : connectRedis(target, silenceMs)
  return {
    ...link,
    ask: asker(link.send, deadlineMs),
    askBytes: (name, ...args) => withDeadline(link.send(new Command(name, args)), deadlineMs, name),
    run: (script, keys, values, what) => {
      const args = [String(keys.length), ...keys, ...values]
      const reply = evalScript(script, (name, code) => link.send(new Command(name, [code, ...args])))
      return withDeadline(reply, deadlineMs, what)
    },
  }
}

function asker(send: (command: Command) => Promise<unknown>, deadlineMs: number): Ask {
  return (name, ...args) =>
    withDeadline(send(new Command(name, args, { replyEncoding: 'utf8' })), deadlineMs, name)
}

/** Asks one server, where `Connection.ask` asks the one that has the key. */
export function askAt(server: Server, deadlineMs: number): Ask {
  return asker(command => server.sendCommand(command) as Promise<unknown>, deadlineMs)
}

function connectRedis(target: RedisTarget, silenceMs: number): Link {
  const { kind, path, nodes } = target
  const options = dataOptions(target, silenceMs)
  const address = path === undefined ? nodes[0]! : { path }
  const client = new Redis(
    kind === 'sentinel' ? sentinelOptions(target, options) : { ...options, ...address },
  )
  const isStuck = stuckCheck(silenceMs)
  const errors = noteErrors(client)
  let isClosed = false
  // A server that loads its file accepts connections, and ioredis waits without an error.
  const askIfLoading = () => {
    if (client.status !== 'connect') return
    client.call('info', 'persistence').then(
      text => /^loading:1/m.test(String(text)) && errors.note(new Error('LOADING: it loads its file')),
      () => {},
    )
  }
  client.on('connect', () => setTimeout(askIfLoading, LOADING_MS).unref())
  // ioredis gives up for good if interrupted while it asks the Sentinels.
  client.on('end', () => {
    if (!isClosed) setTimeout(() => !isClosed && client.connect().catch(() => {}), RECONNECT_MS_MAX).unref()
  })
  return {
    isCluster: false,
    serverOf: () => (client.status === 'ready' ? client : undefined),
    send: command => client.sendCommand(command) as Promise<unknown>,
    locate: async () => {},
    onReady: listener => client.on('ready', listener),
    onLost: listener => client.on('close', () => listener(client)),
    drop: server => server.disconnect(true),
    // Only a connection that is being made (`connect`) can be stuck here: queries of Sentinels have their own deadlines.
    endIfStuck: () => {
      if (client.status !== 'connect' || !isStuck(client.stream)) return
      errors.note(new Error(`no answer within ${silenceMs} ms`))
      client.disconnect(true)
    },
    lastError: () => errors.last(),
    causeAt: (_slot, cause) => errors.last() ?? cause,
    close: () => {
      isClosed = true
      client.disconnect()
    },
  }
}

function connectCluster(target: RedisTarget, silenceMs: number): Link {
  const cluster = new Cluster([...target.nodes], {
    enableOfflineQueue: false,
    clusterRetryStrategy: CLIENT_OPTIONS.retryStrategy,
    retryDelayOnFailover: 0,
    slotsRefreshTimeout: 1000,
    slotsRefreshInterval: 5000,
    // Connects to the name: certificates are for names, and ioredis would let one that is not found keep it from all nodes.
    dnsLookup: (name, done) => done(null, name),
    redisOptions: dataOptions(target, silenceMs),
  })
  mendSlotQueries(cluster)
  const isStuck = stuckCheck(silenceMs)
  const dropped = new WeakSet<Server>()
  const errors = noteErrors(cluster)
  // The name of the slot's node; 'no node' is for `causeAt` to show. It is empty, which means any node, until the client is ready.
  const keyOf = (slot: number) => (cluster.status === 'ready' ? (cluster.slots[slot]?.[0] ?? 'no node') : '')
  const nodeOf = (slot: number): Redis | undefined => {
    const key = keyOf(slot)
    return cluster.nodes('all').find(node => nameOf(node) === key)
  }
  const disconnectSilent = (node: Redis) => {
    errors.note(new Error(`no answer within ${silenceMs} ms`), nameOf(node))
    node.disconnect()
  }
  return {
    isCluster: true,
    serverOf: slot => {
      const node = nodeOf(slot)
      // A waiting connection connects at its first command.
      return node?.status === 'ready' || node?.status === 'wait' ? node : undefined
    },
    send: command => cluster.sendCommand(command) as Promise<unknown>,
    locate: async key => {
      if (cluster.status === 'ready') await cluster.sendCommand(new Command('get', [key]))
    },
    onReady: listener => cluster.on('ready', listener),
    onLost: listener => cluster.on('-node', (node: Redis) => listener(node)),
    // Several shards may drop one connection, and each `disconnect` would add a listener.
    drop: server => {
      if (!dropped.has(server)) disconnectSilent(server)
      dropped.add(server)
    },
    endIfStuck: slot => {
      const node = nodeOf(slot)
      if (node !== undefined && isStuck(node)) disconnectSilent(node)
    },
    lastError: () => errors.last(),
    causeAt: (slot, cause) => withNode(errors.last(keyOf(slot)) ?? cause, keyOf(slot)),
    close: () => cluster.disconnect(),
  }
}

/**
 * Returns a function that tells if it first saw an attempt more than `silenceMs` ago. It then counts anew: an attempt takes a while to
 * end, and each call that ends it would leave a listener.
 */
function stuckCheck(silenceMs: number): (attempt: object) => boolean {
  const seenAtMs = new WeakMap<object, number>()
  return attempt => {
    const nowMs = performance.now()
    const sinceMs = seenAtMs.get(attempt)
    const isStuck = sinceMs !== undefined && nowMs - sinceMs > silenceMs
    if (sinceMs === undefined || isStuck) seenAtMs.set(attempt, nowMs)
    return isStuck
  }
}

function dataOptions(target: RedisTarget, connectTimeout: number) {
  return {
    ...CLIENT_OPTIONS,
    Connector: target.kind === 'sentinel' ? ExplainingSentinelConnector : ExplainingConnector,
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
    // A client without it stays with the demoted primary for ten seconds.
    failoverDetector: true,
    ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(target.tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(target) }),
  }
}

function tlsOptions(target: RedisTarget): ConnectionOptions {
  const { ca, cert, key, name } = target.tls!
  const [node] = target.nodes
  // SNI, for a server with several certificates.
  const host = target.kind === 'standalone' && isIP(node!.host) === 0 ? node!.host : undefined
  // Reading certificates takes milliseconds, so it is done here, and not at each connection.
  return { secureContext: createSecureContext({ ca, cert, key }), servername: name ?? host }
}

/** Errors that only follow from an earlier one. They do not replace that, because it says more. */
const SYMPTOMS = /^(All sentinels|Connection is closed|Failed to refresh slots cache)/

function noteErrors(client: Redis | Cluster) {
  /** The last error by node; '' has that of any. */
  const last = new Map<string, string>()
  const note = (error: Error, node = '') => {
    const text = withNode(briefError(error), node)
    for (const name of ['', node]) if (!last.has(name) || !SYMPTOMS.test(text)) last.set(name, text)
  }
  client.on('error', note)
  client.on('node error', note)
  client.on('sentinelError', note)
  client.on('ready', () => last.delete(''))
  // A Cluster's client stays ready while one node is away.
  client.on('+node', (node: Redis) => {
    node.on('ready', () => last.delete(nameOf(node)))
    // A replica that runs again: nothing connects to it until it takes over, so its 'ready' would come too late.
    if (node.options.readOnly) last.delete(nameOf(node))
  })
  return { note, last: (node = '') => last.get(node) }
}

/** Adds ` (host:port)` unless the error ends with the node's address or host. */
function withNode(error: string, node: string): string {
  const lastWord = error.slice(error.lastIndexOf(' ') + 1).replace(/^\(|\)$/g, '')
  return node === '' || `${node}:`.startsWith(`${lastWord}:`) ? error : `${error} (${node})`
}

export function nameOf({ options }: Redis): string {
  return `${options.host}:${options.port}`
}

/** Returns only the message: ioredis' errors carry a command's arguments, with tokens and passwords. */
function briefError(error: Error & { code?: string }): string {
  const [line = ''] = error.message.trim().split('\n')
  // An unknown command's message repeats them.
  return line.replace(/,? with args beginning with:.*$/, '') || error.code || 'connection failed'
}

/** Rejects after `ms`. Requests do without it: a timer for each would cost too much, so a `Shard` has one for all. */
export function withDeadline<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      // After a stall, timers run before sockets are read.
      setImmediate(() => reject(new Error(`${what}: no answer within ${ms} ms`)))
    }, ms)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

export function slotOf(key: string): number {
  return new Command('get', [key]).getSlot() ?? 0
}

/** The number of the shard that has a key of an address, or of a site. */
export function shardIndex(key: string, count: number): number {
  return fnv1a(isSiteKey(key) ? key : shardKey(key)) % count
}

/**
 * Hash tags of the shards' keys. On a Cluster there are `count`, one whose slot lies in each of as many equal ranges of slots, so that
 * shards spread evenly over any Cluster.
 */
export function shardTags({ isCluster }: Pick<Connection, 'isCluster'>, count: number): readonly string[] {
  if (!isCluster) return ['0']
  const tags: string[] = []
  const slotsPerRange = CLUSTER_SLOTS / count
  for (let candidate = 0, found = 0; found < count; candidate++) {
    const range = Math.floor(slotOf(`{${candidate}}`) / slotsPerRange)
    if (tags[range] !== undefined) continue
    tags[range] = String(candidate)
    found++
  }
  return tags
}
