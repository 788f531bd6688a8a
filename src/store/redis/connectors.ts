/**
 * How ioredis gets its sockets, with one listener more: it listens to the first error of a socket only, and one that speaks
 * TLS and is closed during its handshake tells two. An error that nobody listens to ends the process.
 *
 * The one for a single server is not among what ioredis exports, hence the path. A Cluster's own subscriber connection is made
 * without a connector, so it has no such listener.
 */

import { SentinelConnector } from 'ioredis'
import standalone from 'ioredis/built/connectors/StandaloneConnector.js'

const StandaloneConnector = standalone.default

export class QuietConnector extends StandaloneConnector {
  override async connect(...args: Parameters<InstanceType<typeof StandaloneConnector>['connect']>) {
    const socket = await super.connect(...args)
    return socket.on('error', ignore)
  }
}

export class QuietSentinelConnector extends SentinelConnector {
  override async connect(...args: Parameters<SentinelConnector['connect']>) {
    const socket = await super.connect(...args)
    return socket.on('error', ignore)
  }
}

function ignore(): void {}
