/**
 * What was asked of the service and what became of it, call by call, to be checked afterwards.
 *
 * Nobody who got no answer knows whether the service did what it was asked to: such a call is `unknown`, not `failed`.
 */

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import type { Ending } from './wire.ts'

export type Outcome =
  /** 200. */
  | 'ok'
  /** 4xx: it was looked at, and nothing was done. */
  | 'refused'
  /** No connection was made, so that nobody was asked. */
  | 'failed'
  /** No answer, or 503: the store may have done it and not said so in time. */
  | 'unknown'

export interface Call {
  /** What it is about: the index of a token, say. */
  readonly subject: number
  /** Tells the calls of a subject apart; the same attempt may be made again. */
  readonly attempt: number
  /** By `performance.now`. */
  readonly startedMs: number
  readonly endedMs: number
  readonly outcome: Outcome
  /** 0: no answer. */
  readonly status: number
  readonly code: string
  /** Whose it is, where that does not follow from the subject. */
  readonly of?: string
}

export class History {
  readonly name: string
  readonly calls: Call[] = []
  readonly #startedAtMs = performance.now()

  constructor(name: string) {
    this.name = name
  }

  /** @param ending what became of a call that was made at `startedMs` */
  record(subject: number, attempt: number, startedMs: number, ending: Ending, of?: string): Call {
    const { outcome, status, code } = judged(ending)
    const told = { subject, attempt, startedMs, endedMs: performance.now(), outcome, status, code }
    const call = of === undefined ? told : { ...told, of }
    this.calls.push(call)
    return call
  }

  /** How many calls ended how: `ok`, `refused token-used`, `unknown 503 unavailable`, `unknown timeout` ... */
  get counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { outcome, status, code } of this.calls) {
      const name = [outcome, outcome === 'unknown' && status > 0 ? status : '', code].join(' ')
      const words = name.replace(/ +/g, ' ').trim()
      counts[words] = (counts[words] ?? 0) + 1
    }
    return counts
  }

  /** The calls of each subject, in the order of their ends. */
  bySubject(): Map<number, Call[]> {
    const bySubject = new Map<number, Call[]>()
    for (const call of this.calls) {
      const calls = bySubject.get(call.subject)
      if (calls === undefined) bySubject.set(call.subject, [call])
      else calls.push(call)
    }
    return bySubject
  }

  /** Subjects of which more than one attempt succeeded. The same attempt, made again, may be told of its success again. */
  doubleSuccesses(): number[] {
    const doubles: number[] = []
    for (const [subject, calls] of this.bySubject()) {
      const succeeded = new Set(calls.filter(({ outcome }) => outcome === 'ok').map(({ attempt }) => attempt))
      if (succeeded.size > 1) doubles.push(subject)
    }
    return doubles
  }

  /** One JSON line a call, times in ms since the history began. */
  async save(file: string): Promise<void> {
    const stream = createWriteStream(file)
    for (const { startedMs, endedMs, ...call } of this.calls) {
      const times = {
        from: Math.round(startedMs - this.#startedAtMs),
        to: Math.round(endedMs - this.#startedAtMs),
      }
      if (!stream.write(`${JSON.stringify({ ...times, ...call })}\n`)) await once(stream, 'drain')
    }
    stream.end()
    await once(stream, 'finish')
  }
}

function judged(ending: Ending): { outcome: Outcome; status: number; code: string } {
  if (typeof ending === 'string')
    return { outcome: ending === 'unreachable' ? 'failed' : 'unknown', status: 0, code: ending }
  const { status, code } = ending
  if (status === 200) return { outcome: 'ok', status, code: '' }
  return { outcome: status >= 400 && status < 500 ? 'refused' : 'unknown', status, code }
}
