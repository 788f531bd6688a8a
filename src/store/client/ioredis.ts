/** ioredis, and all that relies on more than it documents. With another version the start fails, instead of some later request. */

import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'
import standalone from 'ioredis/built/connectors/StandaloneConnector.js'
import { StoreSetupError } from '../store.ts'

export { Cluster, Command, Redis }

const VERSION = '6.0.0'
/** ioredis' index does not export this class. */
const StandaloneConnector = standalone.default

const METHODS: readonly [of: { readonly prototype: object }, name: string][] = [
  [Command, 'toWritable'],
  [Command, 'getSlot'],
  [Cluster, 'getInfoFromNode'],
  [StandaloneConnector, 'connect'],
  [SentinelConnector, 'connect'],
]
for (const [of, name] of METHODS) {
  if (typeof Reflect.get(of?.prototype ?? {}, name) === 'function') continue
  throw new StoreSetupError(
    `REDIS_URL: the installed ioredis lacks a method ${name}; install version ${VERSION}, for which powgate is made`,
  )
}

/**
 * An ioredis class extends String, so V8 keeps String.prototype as a dictionary and inlines no string method: that took 4 us of
 * a /verify-token. A few hundred loads through an heir make the prototype fast again.
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

/** The form of an unknown host in redirections. */
const NO_ADDRESS = /^\??:(\d+)$/

/**
 * A Cluster's node may not tell where it is (null, '', or `?` for a name), and ioredis leaves such a node out. The node is at the
 * IP address beside that `?`, or at the host that was asked.
 */
Command.setReplyTransformer('cluster', (reply: unknown) => {
  if (!Array.isArray(reply)) return reply
  for (const [, , ...nodes] of reply)
    for (const node of nodes) {
      if (!Array.isArray(node)) continue // the reply of another CLUSTER command
      const [host, , , others = []] = node
      node[0] = (host === '?' && others[others.indexOf('ip') + 1]) || host || '?'
    }
  return reply
})

interface ClusterInside {
  getInfoFromNode(node: Redis | undefined, done: (error?: Error) => void): void
}

export function findNodesWithoutAddress(cluster: Cluster): void {
  let askedHost = ''
  const inside = cluster as unknown as ClusterInside
  const ask = inside.getInfoFromNode.bind(cluster)
  inside.getInfoFromNode = (node, done) => {
    askedHost = node?.options.host ?? askedHost
    ask(node, done)
  }
  cluster.options.natMap = key => {
    const port = NO_ADDRESS.exec(key)?.[1]
    return port === undefined ? null : { host: askedHost, port: Number(port) }
  }
}

type ConnectorConstructor = NonNullable<RedisOptions['Connector']>

const HANDSHAKE_MS = 250

/**
 * A TLS socket that is closed in its handshake emits two errors, ioredis listens for one, and an error without a listener ends the
 * process: so `watched` listens too. It also notices when only one side speaks TLS.
 */
export const QuietConnector = class extends StandaloneConnector {
  override async connect(...args: Parameters<InstanceType<typeof StandaloneConnector>['connect']>) {
    return watched(await super.connect(...args))
  }
} as ConnectorConstructor

export const QuietSentinelConnector = class extends SentinelConnector {
  override async connect(...args: Parameters<SentinelConnector['connect']>) {
    return watched(await super.connect(...args))
  }
} as ConnectorConstructor

function watched<Stream extends Socket>(stream: Stream): Stream {
  const isTls = stream instanceof TLSSocket
  if (isTls) {
    const timer = setTimeout(askWithoutTls, HANDSHAKE_MS, stream)
    for (const event of ['secureConnect', 'close']) stream.once(event, () => clearTimeout(timer))
  }
  return stream.on('error', (error: NodeJS.ErrnoException) => {
    const mayWantTls = error.code === 'ECONNRESET' && stream.bytesRead === 0 && !isTls
    if (mayWantTls) error.message += ' before any answer: does the port want rediss://?'
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
