/** ioredis, and all that relies on more than it documents. If a version lacks one of METHODS, the start fails, instead of some request. */

import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import {
  Cluster,
  Command,
  Redis,
  type RedisOptions,
  SentinelConnector,
  StandaloneConnector,
} from '../../packages/ioredis.ts'
import { OperatorError } from '../../words/errors.ts'
import { LAYOUT } from '../wire.ts'
import { OTHER_LAYOUT } from './trouble.ts'

export { Cluster, Command, Redis }

const VERSION = '6.0.0'

/** Beside each is the file of ioredis' built/ that calls it. */
const METHODS: readonly [of: { readonly prototype: object }, name: string][] = [
  [Command, 'toWritable'], // Redis.js, sendCommand
  [Command, 'getSlot'], // cluster/index.js, sendCommand
  [Cluster, 'getInfoFromNode'], // cluster/index.js, refreshSlotsCache
  [StandaloneConnector, 'connect'], // Redis.js, connect
  [StandaloneConnector, 'check'], // redis/event_handler.js, connectHandler
  [SentinelConnector, 'connect'], // Redis.js, connect
  [SentinelConnector, 'connectToSentinel'], // connectors/SentinelConnector/index.js, resolve and initFailoverDetector
]
for (const [of, name] of METHODS) {
  if (typeof Reflect.get(of?.prototype ?? {}, name) === 'function') continue
  throw new OperatorError(
    `the installed ioredis lacks a method ${name}; install version ${VERSION}, for which powgate is made`,
  )
}

/**
 * An ioredis class extends String, so V8 keeps String.prototype as a dictionary and inlines no string method: that took 4 us of
 * a /verify-token. A few hundred loads through an heir make the prototype fast again (test/store/redis.test.ts asks V8).
 */
const heir: string = Object.create(String.prototype)
for (let loads = 0; loads < 1000; loads++) void heir.charCodeAt

/** A command whose bytes are there already: ioredis only sends them, and matches the reply. */
export class PreparedCommand extends Command {
  readonly #bytes: Buffer

  /** @param args for ioredis to find the slot */
  constructor(name: string, args: string[], bytes: Buffer) {
    super(name, args)
    this.#bytes = bytes
  }

  override toWritable(): Buffer {
    return this.#bytes
  }
}

/** A node whose host is not known, as `natMap` gets it: `:6379` in a redirection, `?:6379` after the reply transformer below. */
const UNKNOWN_HOST = /^\??:(\d+)$/

/**
 * Mends replies to CLUSTER SLOTS. A node may not tell its host (null or ''), or lack the name that it should tell (`?`), and ioredis
 * leaves nodes without a host out. This takes the IP address that stands beside a `?`, or else writes `?`, which `mendSlotQueries`
 * resolves. A node that has left knows no slots, and ioredis would close all connections: after an error it asks the next node.
 */
Command.setReplyTransformer('cluster', (reply: unknown) => {
  if (!Array.isArray(reply)) return reply
  if (reply.length === 0) throw new Error('this node knows no slots of a Cluster')
  for (const [, , ...nodes] of reply)
    for (const node of nodes) {
      if (!Array.isArray(node)) continue // the reply of another CLUSTER command
      const [host, , , details = []] = node // `details` are names, each followed by its value
      node[0] = (host === '?' && details.includes('ip') && details[details.indexOf('ip') + 1]) || host || '?'
    }
  return reply
})

type GetInfoFromNode = (node: Redis | undefined, done: (error?: Error) => void) => void

/**
 * Takes an unknown host for the one that was last asked for the slots, and so gave the answer: ioredis asks one node at a time. A
 * redirection may be of another node, but then ioredis asks for the slots again. It asks over a duplicate of the node's connection, and
 * drops the errors of that. Of a node without another connection there are no others, so this emits them as the cluster's.
 */
export function mendSlotQueries(cluster: Cluster): void {
  let askedHost = ''
  const inside = cluster as unknown as { getInfoFromNode: GetInfoFromNode }
  const ask = inside.getInfoFromNode.bind(cluster)
  inside.getInfoFromNode = (node, done) => {
    if (node === undefined) return ask(node, done)
    const { host, port } = node.options
    askedHost = host ?? askedHost
    const tell = (error: Error) => cluster.emit('node error', error, `${host}:${port}`)
    const duplicate: Redis['duplicate'] = options => node.duplicate(options).on('error', tell)
    ask({ duplicate } as Redis, done)
  }
  cluster.options.natMap = key => {
    const port = UNKNOWN_HOST.exec(key)?.[1]
    return port === undefined ? null : { host: askedHost, port: Number(port) }
  }
}

type ConnectorConstructor = NonNullable<RedisOptions['Connector']>

/** After this time without a TLS handshake the port is asked without TLS, for as long. A port with TLS answers that with no + or -. */
const HANDSHAKE_MS = 250

export const ExplainingConnector = class extends StandaloneConnector {
  override async connect(...args: Parameters<InstanceType<typeof StandaloneConnector>['connect']>) {
    const stream = await super.connect(...args)
    // Behind a path, such as the store process', nobody speaks TLS.
    return 'path' in this.options && this.options.path ? stream : explainTlsMismatch(stream)
  }

  /** Gets INFO's fields before the connection is ready. The store process may be of another version by now; Redis tells no layout. */
  override check(info: { readonly powgate_layout?: string } | null) {
    if ((info?.powgate_layout ?? String(LAYOUT)) === String(LAYOUT)) return true
    this.stream.destroy(new Error(OTHER_LAYOUT))
    return false
  }
} as ConnectorConstructor

export const ExplainingSentinelConnector = class extends SentinelConnector {
  override async connect(...args: Parameters<SentinelConnector['connect']>) {
    return explainTlsMismatch(await super.connect(...args))
  }
} as ConnectorConstructor

interface SentinelInside {
  readonly options: { readonly name: string }
  connectToSentinel(...args: unknown[]): Redis
}

const sentinels = SentinelConnector.prototype as unknown as SentinelInside
const { connectToSentinel } = sentinels
/**
 * Makes the clients that hear of failovers. ioredis prints the errors of a dead Sentinel, because nothing listens for them, and takes
 * the failover of any primary for that of its own. A message begins with the primary's name, then has its old and its new address.
 */
sentinels.connectToSentinel = function (...args) {
  const client = connectToSentinel.apply(this, args)
  const emit = client.emit.bind(client)
  client.emit = (event: string | symbol, ...about: unknown[]) =>
    (event !== 'message' || String(about[1]).startsWith(`${this.options.name} `)) && emit(event, ...about)
  return client.on('error', () => {})
}

/** Tells in the connection's error if only one side speaks TLS. */
function explainTlsMismatch<Stream extends Socket>(stream: Stream): Stream {
  if (stream instanceof TLSSocket) {
    const timer = setTimeout(askWithoutTls, HANDSHAKE_MS, stream)
    for (const event of ['secureConnect', 'close']) stream.once(event, () => clearTimeout(timer))
    // Closed in its handshake it emits two errors, and ioredis listens for one: an error without a listener would end the process.
    return stream.on('error', () => {})
  }
  return stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET' && stream.bytesRead === 0)
      error.message += ' before any answer: does the port want rediss://, or is maxclients reached?'
  })
}

/** Asks without TLS why a handshake is not answered: a Redis without TLS waits for a line's end. */
function askWithoutTls(stream: Socket): void {
  if (stream.remotePort === undefined) return
  const plain = connect(stream.remotePort, stream.remoteAddress, () => plain.write('PING\r\n'))
  plain.setTimeout(HANDSHAKE_MS, () => plain.destroy()).on('error', () => {})
  plain.once('data', reply => {
    plain.destroy()
    if (/^[+-]/.test(String(reply))) stream.destroy(new Error('the port speaks no TLS (redis://)'))
  })
}
