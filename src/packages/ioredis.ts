/** What powgate takes of ioredis. The build bundles all that it loads into one file, so that starts are quicker (docs/architecture.md). */

export { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'

import standalone from 'ioredis/built/connectors/StandaloneConnector.js'
/** ioredis' index does not export this class. */
export const StandaloneConnector = standalone.default
