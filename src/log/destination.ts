/** Where log lines go: standard output, as JSON for programs or as text for a person at a terminal. */

import { isatty } from 'node:tty'
import { type DestinationStream, pino } from 'pino'

export type LogFormat = 'auto' | 'json' | 'text'

const STDOUT = 1

/** @param format `auto` is text on a terminal and JSON elsewhere */
export async function logDestination(format: LogFormat): Promise<DestinationStream> {
  const output = pino.destination(STDOUT)
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
