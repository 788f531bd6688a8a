/** Shows a line of the log to a person: its fields as they were logged (docs/reference/log.md), and what its reasons mean. */

import { nonceTerms } from '../domain/nonce.ts'
import type { Reason } from '../domain/outcome.ts'
import type { JudgementReason } from '../domain/score.ts'
import { isNonceText } from '../protocol/proof.ts'
import { JUDGEMENT_WORDS, limitWords } from '../words/reasons.ts'
import { REFUSAL_WORDS } from '../words/refusals.ts'
import type { LogRecord } from './search.ts'

/** These fields describe the process, or are shown elsewhere. */
const NOT_SHOWN = 'event level time name hostname pid msg site nonce reasons'.split(' ')

/** Fields may be missing or have another form: another version may have written the log. */
export function stepOf(record: LogRecord) {
  const fields = Object.entries(record).filter(([name]) => !NOT_SHOWN.includes(name))
  const lines = [...wordsOf(record), fields.map(([name, value]) => `${name} ${valueText(value)}`).join(', ')]
  const title = String(record.event ?? record.msg)
  return { time: momentText(record.time), title, lines: lines.filter(line => line !== '') }
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  return `(${Object.entries(value)
    .map(([name, part]) => `${name} ${valueText(part)}`)
    .join(', ')})`
}

const UNKNOWN = 'Unknown to this version.'

function wordsOf({ event, reason, reasons, endpoint, policy, site }: LogRecord): string[] {
  if (event === 'fault') return [REFUSAL_WORDS.internal]
  if (event !== 'refused')
    return (Array.isArray(reasons) ? reasons : []).map(name => {
      return `${name}: ${JUDGEMENT_WORDS[name as JudgementReason] ?? UNKNOWN}`
    })
  return [REFUSAL_WORDS[reason as Reason] ?? UNKNOWN, limitWords(endpoint, policy, site)]
}

/** With these reasons, the nonce may be made up. */
const FORGED = ['nonce-forged', 'token-forged', 'token-malformed']

/** Describes a challenge that the log lacks by its nonce, which states the challenge's terms. */
export function missingChallenge(nonce: string, records: readonly LogRecord[]): string | undefined {
  if (!isNonceText(nonce) || records.some(({ event }) => event === 'challenge-issued')) return undefined
  if (records.every(({ reason }) => FORGED.includes(String(reason)))) return undefined
  const { issuedAtMs, difficulty, puzzle } = nonceTerms(nonce)
  return `The challenge is not in this log (successes are sampled, and another host may have issued it); by its nonce it was issued ${momentText(issuedAtMs)}, difficulty ${difficulty}, puzzle ${puzzle}.`
}

/** UTC, to the millisecond. */
export function momentText(unixMs: unknown): string {
  const date = new Date(Number(unixMs))
  return Number.isNaN(date.getTime()) ? 'at an unknown time' : date.toISOString().replace('T', ' ')
}
