/**
 * The demo's backend, as any site's: reads the form, redeems its token by POST /verify-token over HTTP, and decides whether to
 * accept the form. pages.ts (as HTML) or demo.js (from JSON) shows the decision.
 */

import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { SITE_DEFAULTS } from '../domain/site.ts'
import type { RedemptionResult } from '../protocol/wire.ts'

interface RedemptionAnswer {
  /** HTTP status; 0 without an answer. */
  readonly status: number
  /** The answer's JSON; undefined if the answer is not JSON. */
  readonly answer: unknown
  readonly ms: number
}

/** The address on which this service listens. */
export interface ServiceAddress {
  readonly host: string
  readonly port: number
}

const ANSWER_MS_MAX = 3000
const ANSWER_CHARACTERS_MAX = 10_000

/** Never rejects; without an answer, the status is 0. */
export function redeem(
  listener: ServiceAddress,
  apiKey: string,
  body: { readonly token: string; readonly expectedIp?: string },
): Promise<RedemptionAnswer> {
  const start = performance.now()
  return new Promise(resolve => {
    const finish = (status: number, text = '') =>
      resolve({ status, answer: parse(text), ms: Math.round((performance.now() - start) * 10) / 10 })
    const outgoing = request(optionsFor(listener, apiKey), incoming => {
      readText(incoming).then(
        text => finish(incoming.statusCode ?? 0, text),
        () => finish(0),
      )
    })
    outgoing.on('error', () => finish(0))
    outgoing.end(JSON.stringify(body))
  })
}

function optionsFor({ host, port }: ServiceAddress, apiKey: string): RequestOptions {
  const isEverywhere = host === '0.0.0.0' || host === '::'
  return {
    host: host === '::' ? '::1' : isEverywhere ? '127.0.0.1' : host,
    port,
    path: '/verify-token',
    method: 'POST',
    headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  }
}

async function readText(incoming: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of incoming.setEncoding('utf8')) {
    text += chunk
    if (text.length > ANSWER_CHARACTERS_MAX) throw new Error('the answer is too long')
  }
  return text
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export interface FormDecision {
  readonly status: number
  readonly accepted: boolean
  readonly title: string
  readonly text: string
  /** The stable code of a refusal; null if the form was accepted. */
  readonly code: string | null
  readonly facts: readonly (readonly [name: string, value: string])[]
  /** The answer of /verify-token; null if there was no call. */
  readonly redemption: RedemptionAnswer | null
}

export interface Form {
  readonly name: string
  readonly token: string
  /** How long the solution took, measured by the page; undefined if unknown. */
  readonly solveMs: number | undefined
}

const NAME_CHARACTERS_MAX = 80
const SOLVE_MS_MAX = 3_600_000

/** @param body urlencoded */
export function readForm(body: string): Form {
  const fields = new URLSearchParams(body)
  const solveMs = Number(fields.get('solve-ms') || Number.NaN)
  return {
    name: (fields.get('name') ?? '').trim().slice(0, NAME_CHARACTERS_MAX),
    token: fields.get('powgate-token') ?? '',
    solveMs: solveMs >= 0 && solveMs <= SOLVE_MS_MAX ? solveMs : undefined,
  }
}

/** A refusal without a call of /verify-token. */
export function refusedForm(status: number, code: string, text: string): FormDecision {
  return { status, accepted: false, title: 'Not accepted', text, code, facts: [], redemption: null }
}

/** The decision of a backend: `success` alone accepts a form, and any unclear answer refuses it. */
export function decide({ name, solveMs }: Form, redemption: RedemptionAnswer): FormDecision {
  const { status } = redemption
  const answer = (redemption.answer ?? {}) as Partial<Record<string, unknown>>
  const times = [...solveTime(solveMs), ['Redeeming the token took', milliseconds(redemption.ms)]] as const
  if (status === 200 && answer.success === true) {
    const result = answer as unknown as Extract<RedemptionResult, { success: true }>
    // The demo site passes any score, so that its visitors see theirs.
    const wouldPass = result.score >= SITE_DEFAULTS.threshold
    return {
      status: 200,
      accepted: true,
      title: wouldPass ? 'Accepted' : 'Accepted here, refused by most sites',
      text: `Thank you${name === '' ? '' : `, ${name}`}. The message would be delivered now.`,
      code: null,
      facts: [...scoreFacts(result), ...times],
      redemption,
    }
  }
  const isAnswered = status === 400
  return {
    status: isAnswered ? 403 : 503,
    accepted: false,
    title: isAnswered ? 'Refused' : 'Not now',
    text: typeof answer.error === 'string' ? answer.error : 'The service did not answer.',
    code: typeof answer.code === 'string' ? answer.code : 'no-answer',
    facts: [['/verify-token answered', status === 0 ? 'nothing' : String(status)], ...times],
    redemption,
  }
}

function scoreFacts({
  score,
  ip,
  solvedAt,
}: Extract<RedemptionResult, { success: true }>): [string, string][] {
  const { threshold } = SITE_DEFAULTS
  return [
    ['Score', `${score} (0: a bot, 1: a person)`],
    [`At the usual threshold of ${threshold}`, score >= threshold ? 'would pass' : 'would not pass'],
    ['Solved from', ip],
    ['Solved at', new Date(solvedAt).toISOString()],
  ]
}

function solveTime(solveMs: number | undefined): [string, string][] {
  return solveMs === undefined ? [] : [['Solving took (measured by the page)', milliseconds(solveMs)]]
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}
