/** The demo's backend, written like any site's: reads the form, redeems its token over HTTP, and decides. */

import { SITE_DEFAULTS } from '../domain/site.ts'
import type { PuzzleName } from '../protocol/proof.ts'
import type { RedemptionResult } from '../protocol/wire.ts'

interface Redemption {
  readonly status: number
  readonly answer: RedemptionResult
}

const ANSWER_MS_MAX = 3000

/** Resolves with undefined if the service does not answer, is too late, or sends no JSON; never rejects. */
export async function redeem(
  url: string,
  apiKey: string,
  body: { readonly token: string; readonly expectedIp: string },
): Promise<Redemption | undefined> {
  try {
    const response = await fetch(`${url}/verify-token`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    })
    return { status: response.status, answer: (await response.json()) as RedemptionResult }
  } catch {
    return undefined
  }
}

export interface FormDecision {
  readonly status: number
  readonly accepted: boolean
  readonly title: string
  readonly text: string
  readonly code: string | null
  /** What /verify-token answered, which the page shows. */
  readonly answer?: RedemptionResult | undefined
}

interface Form {
  readonly name: string
  readonly token: string
  readonly puzzle: PuzzleName
}

const NAME_CHARACTERS_MAX = 80

export function readForm(body: string): Form {
  const fields = new URLSearchParams(body)
  return {
    name: (fields.get('name') ?? '').trim().slice(0, NAME_CHARACTERS_MAX),
    token: fields.get('powgate-token') ?? '',
    puzzle: fields.get('puzzle') === 'hashwx' ? 'hashwx' : 'sha256',
  }
}

/** A form is accepted only if `success` is true. */
export function decide({ name }: Form, redemption: Redemption | undefined): FormDecision {
  const { status, answer } = redemption ?? {}
  if (status === 200 && answer?.success === true) {
    const { threshold } = SITE_DEFAULTS
    const score = `Your score is ${answer.score}, from 0 (a bot) to 1 (a person); most sites ask for ${threshold}.`
    return {
      status: 200,
      accepted: true,
      // The demo's sites pass every score.
      title: answer.score >= threshold ? 'Accepted' : 'Accepted here, refused by most sites',
      text: `Thank you${name === '' ? '' : `, ${name}`}. The message would be delivered now. ${score}`,
      code: null,
      answer,
    }
  }
  const isTokenRefused = status === 400 // All else in the request is the demo's own, and right.
  // The answer's own error and code, if it came and has them, take the place of these two.
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
    answer,
  }
}
