/** What powgate takes of pino. The build makes each file of this folder one file with all that it loads, which saves a fifth of the CPU time of a start. */

export { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
