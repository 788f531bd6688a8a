/**
 * A connection to Redis: standalone, Sentinel or Cluster, behind the few calls that the store needs.
 *
 *   redis://[user:password@]host[:port][/db]                     one server (rediss:// for TLS)
 *   redis://a:7000,redis://b:7000,...                            a Cluster: two or more seeds
 *   redis+cluster://[user:password@]a:7000,b:7000                a Cluster, also with one seed
 *   redis+sentinel://[user:password@]a:26379,b:26379/<name>[/db] Sentinels that know the primary <name>
 */

import { Cluster, type Command, Redis } from 'ioredis'

export interface RedisTarget {
  readonly kind: 'standalone' | 'sentinel' | 'cluster'
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  /** Sentinel only: name of the primary. */
  readonly primaryName: string | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  readonly db: number
  readonly tls: boolean
}

/** undefined if the text is none of the forms above. */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  const parts = text.split(',').map(part => part.trim())
  const scheme = /^(rediss?(?:\+cluster|\+sentinel)?):\/\//.exec(parts[0] ?? '')?.[1]
  if (scheme === undefined) return undefined
  const urls: URL[] = []
  for (const part of parts) {
    const authority = part.replace(/^rediss?(\+cluster|\+sentinel)?:\/\//, '')
    if (authority === '' || (part !== authority && !part.startsWith(`${scheme}://`))) return undefined
    if (!URL.canParse(`redis://${authority}`)) return undefined
    urls.push(new URL(`redis://${authority}`))
  }
  const [engine, mode] = scheme.split('+')
  const kind =
    mode === 'sentinel' ? 'sentinel' : mode === 'cluster' || urls.length > 1 ? 'cluster' : 'standalone'
  return targetOf(kind, urls, engine === 'rediss')
}

const DEFAULT_PORTS = { standalone: 6379, cluster: 6379, sentinel: 26379 }

function targetOf(kind: RedisTarget['kind'], urls: readonly URL[], tls: boolean): RedisTarget | undefined {
  const path = urls[urls.length - 1]!.pathname.split('/').slice(1)
  const primaryName = kind === 'sentinel' ? path.shift() : undefined
  const [dbText = ''] = path
  const isDbAllowed = kind !== 'cluster'
  if (kind === 'sentinel' && (primaryName === undefined || primaryName === '')) return undefined
  if (path.length > 1 || !/^\d{0,3}$/.test(dbText) || (dbText !== '' && !isDbAllowed)) return undefined
  const credentials = urls.find(url => url.username !== '' || url.password !== '')
  const username = decoded(credentials?.username)
  const password = decoded(credentials?.password)
  if (username === null || password === null) return undefined
  if (urls.some(url => url.hostname === '')) return undefined
  return {
    kind,
    nodes: urls.map(url => ({ host: hostOf(url), port: Number(url.port || DEFAULT_PORTS[kind]) })),
    primaryName,
    username,
    password,
    db: Number(dbText),
    tls,
  }
}

/** null if the text is not percent-encoded as a URL must be. */
function decoded(text: string | undefined): string | undefined | null {
  try {
    return text ? decodeURIComponent(text) : undefined
  } catch {
    return null
  }
}

/** IPv6 hosts stand in brackets in a URL. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/** Kind and hosts, without credentials: for logs. */
export function describeTarget(target: RedisTarget): string {
  const nodes = target.nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
  return target.kind === 'standalone' ? `Redis at ${nodes}` : `Redis ${target.kind} at ${nodes}`
}

export interface Connection {
  /** When the server last answered a script, by `performance.now`. */
  lastReplyMs: number
  readonly isCluster: boolean
  isReady(): boolean
  /** Told when the connection is lost, and when it is ready again. Of a Cluster, only when all of it is. */
  onChange(listener: (isReady: boolean) => void): void
  /** The last connection error since the connection was last ready: one line without credentials. */
  lastError(): string | undefined
  send(command: Command): Promise<unknown>
  /** Drops the TCP connection and makes a new one. */
  reconnect(): void
  close(): void
}

const RECONNECT_MS_MAX = 500

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
  connectTimeout: 2000,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, RECONNECT_MS_MAX),
  reconnectOnError: (error: Error) => (error.message.includes('READONLY') ? 1 : false),
  disableClientInfo: true,
} as const

export function connect(target: RedisTarget): Connection {
  const client = target.kind === 'cluster' ? connectCluster(target) : connectRedis(target)
  let lastError: string | undefined
  client.on('error', (error: Error) => {
    lastError = briefError(error)
  })
  client.on('ready', () => {
    lastError = undefined
  })
  return {
    lastReplyMs: performance.now(),
    isCluster: target.kind === 'cluster',
    isReady: () => client.status === 'ready',
    onChange: listener => {
      client.on('ready', () => listener(true))
      client.on('close', () => listener(false))
    },
    lastError: () => lastError,
    send: command => client.sendCommand(command) as Promise<unknown>,
    reconnect: () => client.disconnect(true),
    close: () => client.disconnect(),
  }
}

function connectRedis(target: RedisTarget): Redis {
  const common = {
    ...CLIENT_OPTIONS,
    ...credentialsOf(target),
    db: target.db,
    ...(target.tls ? { tls: {} } : {}),
  }
  if (target.kind === 'sentinel') {
    return new Redis({
      ...common,
      sentinels: [...target.nodes],
      name: target.primaryName!,
      ...(target.tls ? { enableTLSForSentinelMode: true, sentinelTLS: {} } : {}),
    })
  }
  return new Redis({ ...common, ...target.nodes[0]! })
}

function connectCluster(target: RedisTarget): Cluster {
  return new Cluster([...target.nodes], {
    enableOfflineQueue: false,
    clusterRetryStrategy: (attempt: number) => Math.min(50 * attempt, RECONNECT_MS_MAX),
    retryDelayOnFailover: 0,
    slotsRefreshTimeout: 1000,
    slotsRefreshInterval: 5000,
    redisOptions: {
      ...CLIENT_OPTIONS,
      ...credentialsOf(target),
      ...(target.tls ? { tls: {} } : {}),
    },
  })
}

function credentialsOf(target: RedisTarget): { username?: string; password?: string } {
  return {
    ...(target.username === undefined ? {} : { username: target.username }),
    ...(target.password === undefined ? {} : { password: target.password }),
  }
}

/** ioredis errors carry the command and its arguments, keys and tokens among them: only the message is passed on. */
function briefError(error: Error & { code?: string; lastNodeError?: Error }): string {
  const cause = error.lastNodeError ?? error
  return cause.message || error.code || 'connection failed'
}
