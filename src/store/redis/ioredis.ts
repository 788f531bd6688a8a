/**
 * ioredis, and everything that relies on more than its documentation promises. If another version is installed, the start
 * fails with a message, instead of some later request.
 */

import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'
import standalone from 'ioredis/built/connectors/StandaloneConnector.js'
import { StoreSetupError } from '../store.ts'

export { Cluster, Command, Redis }

/** The version that was examined; package.json pins it. */
const VERSION = '6.0.0'
/** Not exported, hence the import by path. */
const StandaloneConnector = standalone.default

const METHODS: readonly [of: { readonly prototype: object }, name: string][] = [
  [Command, 'toWritable'],
  [Command, 'getSlot'],
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
 * ioredis has a class that extends String, so V8 keeps String.prototype as a dictionary and inlines no string method:
 * `charCodeAt` takes 8.8 ns instead of 1.8, which adds some 4 us to a /verify-token. A few hundred loads through an object
 * that inherits from the prototype make it fast again.
 */
const heir: string = Object.create(String.prototype)
for (let loads = 0; loads < 1000; loads++) void heir.charCodeAt

/** A command that is encoded already; ioredis sends it and matches the reply. */
export class PreparedCommand extends Command {
  readonly #bytes: Buffer

  /** @param args those that ioredis needs to find the slot */
  constructor(name: string, args: string[], bytes: Buffer) {
    super(name, args)
    this.#bytes = bytes
  }

  override toWritable(): Buffer {
    return this.#bytes
  }
}

/** A class that makes sockets; ioredis passes it its own options. */
type ConnectorConstructor = NonNullable<RedisOptions['Connector']>

const HANDSHAKE_MS = 250

/**
 * Connectors with one more error listener. A TLS socket that is closed during its handshake emits two errors, ioredis listens
 * for one, and an unheard error ends the process. (A Cluster's subscriber connection has no connector, so it stays without.)
 * They also notice when only one side uses TLS.
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
    const isUnheard = error.code === 'ECONNRESET' && stream.bytesRead === 0 && !isTls
    if (isUnheard) error.message += ' before any answer: does the port want rediss://?'
  })
}

/** A Redis without TLS waits for a line end, so it leaves the handshake unanswered. */
function askWithoutTls(stream: Socket): void {
  if (stream.remotePort === undefined) return
  const plain = connect(stream.remotePort, stream.remoteAddress, () => plain.write('PING\r\n'))
  plain.setTimeout(HANDSHAKE_MS, () => plain.destroy()).on('error', () => {})
  plain.once('data', reply => {
    plain.destroy()
    if (/^[+-]/.test(String(reply))) stream.destroy(new Error('the port speaks no TLS (redis://)'))
  })
}
