/**
 * Structured logs on standard output: one JSON object a line. Nothing secret is passed to them; should a programming
 * error do it all the same, two nets are below: fields are withheld by name, and what has the form of a secret is taken
 * out of every line (log/redaction.ts).
 */

import { hostname } from 'node:os'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { safeError, scrubber, withhold } from './log/redaction.ts'

export { EventLog } from './log/event-log.ts'
export type { Logger }

/**
 * @param bindings fields of every line
 * @param secrets texts that no line may contain
 * @param destination instead of standard output
 */
export function createLogger(
  level: string,
  bindings: Record<string, unknown> = {},
  secrets: readonly string[] = [],
  destination: DestinationStream = pino.destination(1),
): Logger {
  const clean = scrubber(secrets)
  const options: LoggerOptions = {
    level,
    base: { name: 'powgate', hostname: hostname(), pid: process.pid, ...bindings },
    serializers: { err: error => (error instanceof Error ? safeError(error, clean) : error) },
    formatters: { level: label => ({ level: label }), log: fields => withhold(fields, clean) },
    hooks: { streamWrite: clean },
  }
  return pino(options, destination)
}

/**
 * Ends the process on an exception that nobody caught, as Node.js does by itself; but Node.js prints all that the error
 * carries: of one from Redis, the command with keys, tokens or the password.
 */
export function endOnFault(log: Logger): void {
  process.on('uncaughtException', error => {
    log.fatal({ event: 'fault', err: error }, 'a fault ends the process')
    process.exit(1)
  })
}
