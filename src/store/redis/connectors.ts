/**
 * Connectors, which make the sockets of ioredis, with one more error listener. ioredis listens to a socket's first error
 * only, but a TLS socket that is closed during its handshake emits two. An error event without a listener ends the process.
 *
 * ioredis does not export its connector for a single server, hence the import by path. A Cluster's own subscriber connection
 * is made without a connector, so that connection has no such listener.
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
