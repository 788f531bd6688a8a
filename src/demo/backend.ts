/** The demo's backend, written like any site's: reads the form, redeems its token over HTTP, and decides. */

import { SITE_DEFAULTS } from '../domain/site.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import type { RedemptionResult } from '../protocol/wire.ts'

interface RedemptionAnswer {
  /** 0 without an answer. */
  readonly status: number
  readonly answer: RedemptionResult | undefined
  readonly ms: number
}

const ANSWER_MS_MAX = 3000

/** Never rejects. */
export async function redeem(
  url: string,
  apiKey: string,
  body: { readonly token: string; readonly expectedIp?: string },
): Promise<RedemptionAnswer> {
  const start = performance.now()
  let status = 0
  let answer: RedemptionResult | undefined
  try {
    const response = await fetch(`${url}/verify-token`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    })
    status = response.status
    answer = (await response.json()) as RedemptionResult
  } catch {
    // No connection, too late, or no JSON: `decide` refuses the form, since `answer` is missing.
  }
  return { status, answer, ms: Math.round((performance.now() - start) * 10) / 10 }
}

export interface FormDecision {
  readonly status: number
  readonly accepted: boolean
  readonly title: string
  readonly text: string
  readonly code: string | null
  readonly facts: readonly (readonly [name: string, value: string])[]
  readonly answer?: unknown
}

interface Form {
  readonly name: string
  readonly token: string
  readonly puzzle: PuzzleName
  readonly solveMs: number | undefined
}

const NAME_CHARACTERS_MAX = 80
const SOLVE_MS_MAX = 3_600_000

export function readForm(body: string): Form {
  const fields = new URLSearchParams(body)
  const solveMs = Number(fields.get('solve-ms') || Number.NaN)
  return {
    name: (fields.get('name') ?? '').trim().slice(0, NAME_CHARACTERS_MAX),
    token: fields.get('powgate-token') ?? '',
    puzzle: fields.get('puzzle') === 'hashwx' ? 'hashwx' : 'sha256',
    solveMs: solveMs >= 0 && solveMs <= SOLVE_MS_MAX ? solveMs : undefined,
  }
}

export function refusedForm(status: number, code: string, text: string): FormDecision {
  return { status, accepted: false, title: 'Not accepted', text, code, facts: [] }
}

/** A form is accepted only if `success` is true. */
export function decide({ name, solveMs }: Form, { status, answer, ms }: RedemptionAnswer): FormDecision {
  const times: [string, string][] = [['Redeeming the token took', milliseconds(ms)]]
  if (solveMs !== undefined) times.unshift(['Solving took (measured by the page)', milliseconds(solveMs)])
  if (status === 200 && answer?.success === true) {
    // The demo site passes every score.
    const { threshold } = SITE_DEFAULTS
    const wouldPass = answer.score >= threshold
    return {
      status: 200,
      accepted: true,
      title: wouldPass ? 'Accepted' : 'Accepted here, refused by most sites',
      text: `Thank you${name === '' ? '' : `, ${name}`}. The message would be delivered now.`,
      code: null,
      facts: [
        ['Score', `${answer.score} (0: a bot, 1: a person)`],
        [`At the usual threshold of ${threshold}`, wouldPass ? 'would pass' : 'would not pass'],
        ['Solved from', answer.ip],
        ['Solved at', new Date(answer.solvedAt).toISOString()],
        ...times,
      ],
      answer,
    }
  }
  const isTokenRefused = status === 400
  // What the service answered replaces these.
  const { error, code } = { error: 'The service did not answer.', code: 'no-answer', ...answer }
  const advice = isTokenRefused
    ? 'Go back to the form, wait for the word Verified, and send it again.'
    : 'Please send the form again in a minute.'
  return {
    status: isTokenRefused ? 403 : 503,
    accepted: false,
    title: isTokenRefused ? 'Refused' : 'Not now',
    text: `${error} ${advice}`,
    code,
    facts: [['/verify-token answered', status === 0 ? 'nothing' : String(status)], ...times],
    answer,
  }
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}
