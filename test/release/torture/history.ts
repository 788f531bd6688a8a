/** All calls to the service, to be checked afterwards. A call without an answer is `unknown`, not `failed`: the service may have acted. */

import type { Answer } from '../../harness/http.ts'

type Outcome =
  | 'ok' // 200
  | 'refused' // 4xx: the service checked the request and did nothing
  | 'failed' // no connection was made, so nothing was sent
  | 'unknown' // no answer, or 503: the store may have done it without confirming it in time

export interface Call {
  /** What the call is about: the index of a token, for example. */
  readonly subject: number
  /** Both times are those of `performance.now`. */
  readonly startedMs: number
  readonly endedMs: number
  readonly outcome: Outcome
  /** 0: no answer. */
  readonly status: number
  readonly code: string
}

export class History {
  readonly name: string
  readonly calls: Call[] = []

  constructor(name: string) {
    this.name = name
  }

  /** @param ending of a call that was made at `startedMs`: its answer, or why none came */
  record(subject: number, startedMs: number, ending: Answer | Error): Call {
    const call = { subject, startedMs, endedMs: performance.now(), ...judged(ending) }
    this.calls.push(call)
    return call
  }

  /** Number of calls by outcome: `ok`, `refused token-used`, `unknown 503 unavailable`, `unknown ECONNRESET` ... */
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
    for (const call of this.calls) bySubject.set(call.subject, [...(bySubject.get(call.subject) ?? []), call])
    return bySubject
  }

  doubleSuccesses(): number[] {
    const isDouble = (calls: readonly Call[]) => calls.filter(({ outcome }) => outcome === 'ok').length > 1
    return [...this.bySubject()].flatMap(([subject, calls]) => (isDouble(calls) ? subject : []))
  }
}

function judged(ending: Answer | Error): Pick<Call, 'outcome' | 'status' | 'code'> {
  if (ending instanceof Error) {
    const { code = ending.message } = ending as NodeJS.ErrnoException
    return { outcome: code === 'ECONNREFUSED' ? 'failed' : 'unknown', status: 0, code }
  }
  const { status, json } = ending
  if (status === 200) return { outcome: 'ok', status, code: '' }
  return { outcome: status >= 400 && status < 500 ? 'refused' : 'unknown', status, code: json?.code ?? '' }
}
