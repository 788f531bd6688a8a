/**
 * Secrets must appear in no output. While the tests run, their secrets and all output of the services are recorded in a
 * directory. Afterwards test/canaries.ts searches the output for the secrets. Without the directory (a single test file, run
 * by hand) nothing is recorded.
 */

import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const DIR = process.env.CANARY_DIR

type SecretKind = 'master secret' | 'api key' | 'token' | 'redis password'
export type Outlet = 'output' | 'command line' | 'answer' | 'metrics' | 'error line'

export const SECRET_KINDS: readonly SecretKind[] = ['master secret', 'api key', 'token', 'redis password']

export interface NotedSecret {
  readonly kind: SecretKind
  readonly text: string
}

export interface NotedText {
  readonly outlet: Outlet
  readonly text: string
}

type Note = NotedSecret | NotedText

const FLUSH_CHARACTERS = 1 << 16
let pending: string[] = []
let characters = 0

function note(entry: Note): void {
  if (DIR === undefined) return
  const line = JSON.stringify(entry)
  pending.push(line)
  characters += line.length
  if (characters > FLUSH_CHARACTERS) flush()
}

function flush(): void {
  if (pending.length > 0) appendFileSync(join(DIR!, `${process.pid}.jsonl`), `${pending.join('\n')}\n`)
  pending = []
  characters = 0
}

if (DIR !== undefined) process.on('exit', flush)

/** A shorter secret would be found in harmless text, so tests with a short password are not checked. */
const SECRET_CHARACTERS_MIN = 12

export function noteSecret(kind: SecretKind, text: string): void {
  if (text.length >= SECRET_CHARACTERS_MIN) note({ kind, text })
}

export function noteText(outlet: Outlet, text: string): void {
  if (text !== '') note({ outlet, text })
}

const ANSWERS_MAX = 20_000
const answers = new Set<string>()

/** Records an answer, unless it is a token that was requested. Most errors are repeated, so each is recorded once. */
export function noteAnswer(url: string, status: number, body: string, headers: object): void {
  if (DIR === undefined) return
  const path = new URL(url).pathname
  if (path === '/verify' && status === 200) return
  if (answers.has(body) || answers.size >= ANSWERS_MAX) return
  answers.add(body)
  noteText(path === '/metrics' ? 'metrics' : 'answer', `${body}\n${JSON.stringify(headers)}`)
}

/** Records everything that one start of a service has printed. No test is a terminal, so a first start shows no key. */
export function noteOutput(stdout: string, stderr: string): void {
  noteText('output', stdout)
  noteText('output', stderr)
}

/** Records the command lines of a process and its children, which `ps` shows to every user of the machine. */
export function noteProcesses(pid: number): void {
  if (DIR === undefined) return
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/)
    for (const process of [String(pid), ...children]) {
      if (process !== '') noteText('command line', readFileSync(`/proc/${process}/cmdline`, 'utf8'))
    }
  } catch {} // it has ended
}

/** The secret part of an API key or a token: both end with 43 characters that are unique to them. */
const TAIL = /[\w-]{43}$/
const TAIL_CHARACTERS = 43
const TAIL_RUN = /[\w-]{43,}/g

interface Leak {
  readonly kind: SecretKind
  readonly outlet: Outlet
  readonly offset: number
}

export function findLeaks(secrets: readonly NotedSecret[], texts: readonly NotedText[]): Leak[] {
  const tails = new Map<string, SecretKind>()
  const others = new Map<string, SecretKind>()
  for (const { kind, text } of secrets) {
    const tail = kind === 'api key' || kind === 'token' ? TAIL.exec(text)?.[0] : undefined
    if (tail === undefined) others.set(text, kind)
    else tails.set(tail, kind)
  }
  return texts.flatMap(({ outlet, text }) => [
    ...tailsIn(text, outlet, tails),
    ...othersIn(text, outlet, others),
  ])
}

/** Finds all tokens in one pass over the text, because there may be tens of thousands. */
function tailsIn(text: string, outlet: Outlet, tails: ReadonlyMap<string, SecretKind>): Leak[] {
  const leaks: Leak[] = []
  for (const { 0: run, index } of text.matchAll(TAIL_RUN)) {
    for (let at = 0; at + TAIL_CHARACTERS <= run.length; at++) {
      const kind = tails.get(run.slice(at, at + TAIL_CHARACTERS))
      if (kind !== undefined) leaks.push({ kind, outlet, offset: index + at })
    }
  }
  return leaks
}

function othersIn(text: string, outlet: Outlet, others: ReadonlyMap<string, SecretKind>): Leak[] {
  const leaks: Leak[] = []
  for (const [secret, kind] of others) {
    for (const spelling of new Set([
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
    ])) {
      for (let at = text.indexOf(spelling); at >= 0; at = text.indexOf(spelling, at + 1)) {
        leaks.push({ kind, outlet, offset: at })
      }
    }
  }
  return leaks
}
