/** Logs: a JSON object per line, or text on a terminal. */

import { hostname } from 'node:os'
import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, type LoggerOptions, pino } from '../packages/pino.ts'
import { LogOutput, STDOUT } from './log-output.ts'
import { safeError, scrubberOf, withhold } from './redaction.ts'

export type { Logger }

export const logOutput = new LogOutput()

export async function logDestination(format: 'auto' | 'json' | 'text'): Promise<DestinationStream> {
  const isTerminal = isatty(STDOUT)
  if (format === 'json' || (format === 'auto' && !isTerminal)) return logOutput
  const { prettyFactory } = await import('pino-pretty')
  const text = prettyFactory({
    colorize: isTerminal,
    ignore: 'name,hostname,pid',
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
  })
  // A pino-pretty stream loses the last lines of a process that exits.
  return { write: line => logOutput.write(text(line)) }
}

/** The secrets of the process, which has one logger. A secret that a reload replaces stays here, because later lines may quote it. */
const secretsKnown = new Set<string>()
let scrubKnown = scrubberOf([])
const scrub = (line: string) => scrubKnown(line)

/** Removes these secrets too, from every line from now on. */
export function scrubToo(secrets: readonly string[]): void {
  for (const secret of secrets) secretsKnown.add(secret)
  scrubKnown = scrubberOf([...secretsKnown])
}

/** @param bindings fields of every line. @param secrets removed from every line, in three layers (redaction.ts) */
export function createLogger(
  level: string,
  bindings: Record<string, unknown> = {},
  secrets: readonly string[] = [],
  destination: DestinationStream = logOutput,
): Logger {
  scrubToo(secrets)
  const options: LoggerOptions = {
    level,
    base: { name: 'powgate', hostname: hostname(), pid: process.pid, ...bindings },
    serializers: { err: error => (error instanceof Error ? safeError(error, scrub) : error) },
    formatters: { level: label => ({ level: label }), log: fields => withhold(fields, scrub) },
    hooks: { streamWrite: scrub },
  }
  const log = pino(options, destination)
  // A process has one logger, so this replaces no other's.
  logOutput.onWorksAgain = (lost, cause) =>
    log.warn({ lost, cause }, 'log lines were lost; the log can be written again')
  return log
}

/** Logs an uncaught error without secrets. Node.js would print a command of Redis in it, with keys, tokens or the password. */
export function endOnFault(log: Logger): void {
  process.on('uncaughtException', error => {
    log.fatal({ event: 'fault', err: error }, 'a fault ends the process')
    process.exit(1)
  })
}

/** Returns a function that reports its calls at most once in `pauseMs`, with their number since the last report. */
export function throttled<Details extends unknown[]>(
  pauseMs: number,
  report: (calls: number, ...details: Details) => void,
): (...details: Details) => void {
  let calls = 0
  let reportedAtMs = Number.NEGATIVE_INFINITY
  return (...details) => {
    calls++
    const nowMs = performance.now()
    if (nowMs - reportedAtMs < pauseMs) return
    report(calls, ...details)
    calls = 0
    reportedAtMs = nowMs
  }
}
