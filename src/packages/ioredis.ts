/** What powgate takes of ioredis. The build makes it one file with all that it loads: docs/architecture.md says why. */

export { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'

import standalone from 'ioredis/built/connectors/StandaloneConnector.js'
/** ioredis' index does not export this class. */
export const StandaloneConnector = standalone.default
