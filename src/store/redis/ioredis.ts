/**
 * ioredis, and all that relies on more of it than its documentation promises. A version of another shape ends the start with
 * a line, instead of failing in some request.
 */

import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'
import standalone from 'ioredis/built/connectors/StandaloneConnector.js'
import { StoreSetupError } from '../store.ts'

export { Cluster, Command, Redis }

/** The version that was looked at, as package.json pins it. */
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
 * A class of ioredis extends String, so V8 keeps String.prototype as a dictionary and inlines no string method in this
 * process. `charCodeAt` takes 8.8 ns instead of 1.8, some 4 us of a /verify-token. V8 makes the prototype fast again after
 * some hundred loads of a method through an object that inherits from it.
 */
const heir: string = Object.create(String.prototype)
for (let loads = 0; loads < 1000; loads++) void heir.charCodeAt

/** A command whose bytes are already made. ioredis sends them, and matches the reply to the command. */
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

/** A class that makes sockets; ioredis passes its own options to it. */
type ConnectorConstructor = NonNullable<RedisOptions['Connector']>

const HANDSHAKE_MS = 250

/**
 * Connectors with one more error listener. ioredis listens to a socket's first error only, but a TLS socket that is closed
 * during its handshake emits two. An error event without a listener ends the process. (A Cluster's own subscriber connection
 * is made without a connector, so that connection has no such listener.) They also notice TLS on one side only.
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

/** A Redis without TLS leaves a handshake unanswered, because it waits for the end of a line. */
function askWithoutTls(stream: Socket): void {
  if (stream.remotePort === undefined) return
  const plain = connect(stream.remotePort, stream.remoteAddress, () => plain.write('PING\r\n'))
  plain.setTimeout(HANDSHAKE_MS, () => plain.destroy()).on('error', () => {})
  plain.once('data', reply => {
    plain.destroy()
    if (/^[+-]/.test(String(reply))) stream.destroy(new Error('the port speaks no TLS (redis://)'))
  })
}
