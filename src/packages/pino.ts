/** What powgate takes of pino. The build bundles all that it loads into one file. With all four files of this folder, a start takes a fifth less CPU time. */

export { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
