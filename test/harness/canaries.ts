/**
 * Secrets must appear in no output. While the tests run, their secrets and all output of the services are recorded in a
 * directory. Afterwards test/canaries.ts searches the output for the secrets. Without the directory (a single test file, run
 * by hand) nothing is recorded.
 */

import { appendFileSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { childPids } from './processes.ts'

const DIR = process.env.CANARY_DIR

export const SECRET_KINDS = ['master secret', 'api key', 'token', 'redis password'] as const
export type SecretKind = (typeof SECRET_KINDS)[number]
export type Outlet = 'output' | 'command line' | 'answer' | 'metrics' | 'error line'

export interface NotedSecret {
  readonly kind: SecretKind
  readonly text: string
}

export interface NotedText {
  readonly outlet: Outlet
  readonly text: string
}

const FLUSH_CHARACTERS = 1 << 16
let pending: string[] = []
let pendingCharacters = 0

function note(entry: NotedSecret | NotedText): void {
  if (DIR === undefined) return
  const line = JSON.stringify(entry)
  pending.push(line)
  pendingCharacters += line.length
  if (pendingCharacters > FLUSH_CHARACTERS) flush()
}

function flush(): void {
  if (pending.length > 0) appendFileSync(join(DIR!, `${process.pid}.jsonl`), `${pending.join('\n')}\n`)
  pending = []
  pendingCharacters = 0
}

if (DIR !== undefined) process.on('exit', flush)

/** A shorter secret would be found in harmless text, so it is not recorded. */
export function noteSecret(kind: SecretKind, text: string): void {
  if (text.length >= 12) note({ kind, text })
}

export function noteText(outlet: Outlet, text: string): void {
  if (text !== '') note({ outlet, text })
}

/** Bounds the record of tests that send requests for minutes. */
const ANSWERS_MAX = 20_000
const answers = new Set<string>()

/** Records an answer, unless it is a token that was requested. Most errors are repeated, but for their ids and dates, so each is recorded once. */
export function noteAnswer(url: string, status: number, body: string, headers: IncomingHttpHeaders): void {
  if (DIR === undefined) return
  const path = new URL(url).pathname
  if (path === '/verify' && status === 200) return
  const { 'x-request-id': _, date: __, ...others } = headers
  const answer = body + JSON.stringify(others)
  if (answers.has(answer) || answers.size >= ANSWERS_MAX) return
  answers.add(answer)
  noteText(path === '/metrics' ? 'metrics' : 'answer', `${body}\n${JSON.stringify(headers)}`)
}

/** Records the command lines of a process and its children, which `ps` shows to every user of the machine. */
export function noteProcesses(pid: number): void {
  if (DIR === undefined) return
  try {
    for (const one of [pid, ...childPids(pid)])
      noteText('command line', readFileSync(`/proc/${one}/cmdline`, 'utf8'))
  } catch {} // it has ended
}
