/** What powgate takes of ioredis. The build makes each file of this folder one file with all that it loads, which saves a fifth of the CPU time of a start. */

export { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'

import standalone from 'ioredis/built/connectors/StandaloneConnector.js'
/** ioredis' index does not export this class. */
export const StandaloneConnector = standalone.default
