/** What powgate takes of pino. The build makes it one file with all that it loads: docs/architecture.md says why. */

export { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
