/** What powgate takes of pino. The build bundles all that it loads into one file, so that starts are quicker (docs/architecture.md). */

export { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
