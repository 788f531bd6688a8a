/**
 * Structured logs: one JSON object a line, which a terminal shows as text. No caller passes secrets. Two safeguards
 * (log/redaction.ts) catch programming errors: fields are withheld by name, and texts with the form of a secret are removed
 * from every line.
 */

import { hostname } from 'node:os'
import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { LogOutput } from './output.ts'
import { safeError, scrubber, withhold } from './redaction.ts'

export type { Logger }

type LogFormat = 'auto' | 'json' | 'text'

const STDOUT = 1

/** Of this process; everything that it logs goes there. */
const output = new LogOutput(STDOUT)

/** Lines that could not be written since the process started. */
export function logLinesLost(): number {
  return output.linesLost
}

/**
 * Where log lines go: standard output, as JSON for programs or as text for a person at a terminal.
 *
 * @param format `auto` is text on a terminal and JSON elsewhere
 */
export async function logDestination(format: LogFormat): Promise<DestinationStream> {
  const isTerminal = isatty(STDOUT)
  if (format === 'json' || (format === 'auto' && !isTerminal)) return output
  const { prettyFactory } = await import('pino-pretty')
  const text = prettyFactory({
    colorize: isTerminal,
    ignore: 'name,hostname,pid',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  })
  // A stream of pino-pretty would lose the last lines of a process that exits.
  return { write: line => output.write(text(line)) }
}

/**
 * @param bindings fields of every line
 * @param secrets texts that no line may contain
 * @param destination instead of standard output
 */
export function createLogger(
  level: string,
  bindings: Record<string, unknown> = {},
  secrets: readonly string[] = [],
  destination: DestinationStream = output,
): Logger {
  const clean = scrubber(secrets)
  const options: LoggerOptions = {
    level,
    base: { name: 'powgate', hostname: hostname(), pid: process.pid, ...bindings },
    serializers: { err: error => (error instanceof Error ? safeError(error, clean) : error) },
    formatters: { level: label => ({ level: label }), log: fields => withhold(fields, clean) },
    hooks: { streamWrite: clean },
  }
  const log = pino(options, destination)
  output.onWorksAgain = (lost, cause) =>
    log.warn({ lost, cause }, 'lines of the log were lost; now it is written again')
  return log
}

/**
 * Ends the process on an uncaught exception, as Node.js does by itself. Node.js would print everything that the error
 * carries: an error from Redis has the command with keys, tokens or the password.
 */
export function endOnFault(log: Logger): void {
  process.on('uncaughtException', error => {
    log.fatal({ event: 'fault', err: error }, 'a fault ends the process')
    process.exit(1)
  })
}
