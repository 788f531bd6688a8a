/** A visitor's log lines in words. */

import { nonceTerms } from '../domain/nonce.ts'
import type { Reason } from '../domain/outcome.ts'
import type { JudgementReason } from '../domain/score.ts'
import type { LogEvent } from '../log/event-log.ts'
import { isNonceText, type PuzzleName } from '../protocol/proof.ts'
import { JUDGEMENT_WORDS, limitWords, type ReasonWords, textOf } from '../words/reasons.ts'
import { REFUSAL_WORDS } from '../words/refusals.ts'
import type { LogRecord } from './search.ts'

export interface VisitStep {
  /** Unix milliseconds. */
  readonly time: number
  readonly title: string
  readonly lines: readonly string[]
  readonly record: LogRecord
}

/** Fields may be missing: another version may have written the log. */
export function stepOf(record: LogRecord, visit: readonly LogRecord[] = []): VisitStep {
  const { title, lines } = told(record, visit)
  const worker = number(record, 'worker')
  const where = [
    `request ${text(record, 'requestId') || 'without an id'}`,
    ...(text(record, 'ip') === '' ? [] : [`from ${text(record, 'ip')}`]),
    ...(text(record, 'origin') === '' ? [] : [`page ${text(record, 'origin')}`]),
    ...(worker === undefined ? [] : [`worker ${worker}`]),
  ]
  return { time: number(record, 'time') ?? 0, title, lines: [...lines, where.join(', ')], record }
}

const PUZZLE_WORDS = { sha256: 'SHA-256', hashwx: 'HashWX' } satisfies Record<PuzzleName, string>

const UNKNOWN: ReasonWords = { meaning: 'Unknown to this version.' }

interface Told {
  readonly title: string
  readonly lines: readonly string[]
}

function told(record: LogRecord, visit: readonly LogRecord[]): Told {
  const event = text(record, 'event') as LogEvent
  switch (event) {
    case 'challenge-issued':
      return { title: 'challenge issued', lines: difficultyLines(record) }
    case 'verification-passed':
    case 'verification-failed':
      return judgementTold(record, event === 'verification-passed')
    case 'token-redeemed':
      return { title: 'token redeemed', lines: redemptionLines(record) }
    case 'refused':
      return refusalTold(record, visit)
    case 'fault':
      return { title: 'an exception in powgate', lines: [errorText(record), REFUSAL_WORDS.internal.advice!] }
    default:
      return { title: event, lines: [text(record, 'msg')] }
  }
}

function difficultyLines(record: LogRecord): string[] {
  const price = part(record, 'price')
  const bounds = part(record, 'bounds')
  const of = (name: string) => number(record, name) ?? 0
  const base = number(bounds, 'base')
  const difficulty = number(record, 'difficulty')
  const lines = [`difficulty ${bitsText(record)}; the site's base is ${figure(bounds, 'base')}`]
  const raise = number(record, 'raise') ?? 0
  if (raise > 0) lines.push(`  +${raise}  the operator raised the site for a time (site raise)`)
  if (record.isOfKnownNetwork === true)
    lines.push(
      '  the address is in a known network of the site: its network adds no bits, and an attack one at most',
    )
  const causes = {
    address: `the address had asked for ${of('addressChallenges')} challenges of this site within a minute, of ${of('addressLimit')} allowed`,
    network: `the /${of('networkPrefix')} around the address had ${of('networkProofs')} proofs accepted within about a minute, over its budget`,
    site: `returning addresses had ${of('siteRate')} proofs a minute accepted at the site, usually ${of('siteRateUsual')}, and this one returns`,
  }
  let sum = (base ?? 0) + raise
  for (const [name, cause] of Object.entries(causes)) {
    const bits = number(price, name) ?? 0
    sum += bits
    if (bits > 0) lines.push(`  +${bits}  ${cause}`)
  }
  if (base !== undefined && difficulty !== undefined && sum !== difficulty) {
    lines.push(`  held within the site's bounds, ${figure(bounds, 'min')} to ${figure(bounds, 'max')}`)
  }
  return lines
}

function judgementTold(record: LogRecord, isPassed: boolean): Told {
  const score = number(record, 'score')
  const threshold = number(record, 'threshold') ?? 0
  const penalties = part(record, 'penalties')
  const title = isPassed ? 'verification passed' : 'verification failed'
  const reasons = (Array.isArray(record.reasons) ? record.reasons : []).map(String).map(reason => {
    const penalty = number(penalties, reason)
    const words = JUDGEMENT_WORDS[reason as JudgementReason] ?? UNKNOWN
    const times = reason === 'recentFailure' ? ` (${figure(record, 'addressFailures')} times)` : ''
    return `  ${penalty === undefined ? '' : `-${penalty.toFixed(2)}  `}${reason}${times}: ${textOf(words)}`
  })
  if (score === undefined) return { title, lines: ['not scored', ...reasons] }
  const relation = isPassed ? 'at or above' : 'below'
  return {
    title,
    lines: [
      `score ${score.toFixed(2)}, ${relation} the threshold ${threshold.toFixed(2)}`,
      ...(reasons.length === 0 ? ['  nothing was held against the visitor'] : reasons),
      ...timeLines(record),
    ],
  }
}

function timeLines(record: LogRecord): string[] {
  const elapsedMs = number(record, 'elapsedMs')
  if (elapsedMs === undefined) return []
  const claimedMs = number(record, 'solveTimeMs')
  const claim = claimedMs === undefined ? 'it claimed no time' : `it claims ${seconds(claimedMs)} of solving`
  const bits = bitsText(record)
  if (elapsedMs < 0)
    return [
      `the solution of ${bits} came to a host whose clock is ${seconds(-elapsedMs)} or more behind that of the host that issued the challenge; ${claim}`,
    ]
  return [`the solution of ${bits} came ${seconds(elapsedMs)} after the challenge; ${claim}`]
}

function redemptionLines(record: LogRecord): string[] {
  const ageMs = number(record, 'tokenAgeMs')
  return [
    `by API key ${text(record, 'apiKeyId') || '?'}: score ${number(record, 'score')?.toFixed(2) ?? '?'}, solved by ${text(record, 'visitorIp') || '?'}`,
    ...(ageMs === undefined ? [] : [`${seconds(ageMs)} after the token was issued`]),
  ]
}

/** The nonce says which puzzle it is. */
function bitsText(record: LogRecord): string {
  const nonce = text(record, 'nonce')
  const bits = `${figure(record, 'difficulty')} bits`
  return isNonceText(nonce) ? `${bits} of ${PUZZLE_WORDS[nonceTerms(nonce).puzzle]}` : bits
}

/** A nonce has only a hash of its address, so the challenge's line tells it. */
function mismatchText(record: LogRecord, visit: readonly LogRecord[]): string {
  if (record.reason === 'token-other-address' && text(record, 'visitorIp') !== '')
    return `The backend expects ${text(record, 'expectedIp')}; ${text(record, 'visitorIp')} solved the challenge.`
  const challenge = visit.find(({ event }) => event === 'challenge-issued')
  if (record.reason !== 'nonce-other-address' || challenge === undefined) return ''
  return `${text(challenge, 'ip')} asked for the challenge; ${text(record, 'ip')} sent the solution.`
}

function refusalTold(record: LogRecord, visit: readonly LogRecord[]): Told {
  const reason = text(record, 'reason')
  const endpoint = text(record, 'endpoint')
  const { meaning, advice = '' }: ReasonWords = REFUSAL_WORDS[reason as Reason] ?? UNKNOWN
  const apiKeyId = text(record, 'apiKeyId')
  const code = text(record, 'code')
  const answer = code === reason ? code : `${code} (${reason})`
  const limit = limitWords(endpoint, text(record, 'policy'))
  return {
    title: `refused at /${endpoint}: ${figure(record, 'status')} ${answer}`,
    lines: [
      meaning,
      mismatchText(record, visit),
      advice,
      limit === undefined ? '' : textOf(limit).replace('SITE_KEY', text(record, 'site') || 'SITE_KEY'),
      apiKeyId === '' ? '' : `API key ${apiKeyId}`,
    ].filter(line => line !== ''),
  }
}

function errorText(record: LogRecord): string {
  const error = part(record, 'err')
  return `${text(error, 'type')}: ${text(error, 'message')}`
}

/** These reasons leave the nonce unproven. */
const FORGED: ReadonlySet<string> = new Set(['nonce-forged', 'token-forged', 'token-malformed'])

/** A nonce states its challenge's terms, which are told where the log lacks the challenge. */
export function missingChallenge(nonce: string, records: readonly LogRecord[]): string | undefined {
  if (!isNonceText(nonce) || records.some(({ event }) => event === 'challenge-issued')) return undefined
  if (records.every(({ reason }) => FORGED.has(String(reason)))) return undefined
  const { issuedAtMs, difficulty, puzzle } = nonceTerms(nonce)
  return `The challenge is not in this log (successes are sampled, and another host may have issued it); by its nonce it was issued ${momentText(issuedAtMs)}, difficulty ${difficulty} bits of ${PUZZLE_WORDS[puzzle]}.`
}

/** UTC, to the millisecond. */
export function momentText(unixMs: number): string {
  const date = new Date(unixMs)
  return Number.isNaN(date.getTime()) ? 'at an unknown time' : date.toISOString().replace('T', ' ')
}

function seconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

function part(record: LogRecord, name: string): LogRecord {
  const value = record[name]
  return typeof value === 'object' && value !== null ? (value as LogRecord) : {}
}

function number(record: LogRecord, name: string): number | undefined {
  const value = record[name]
  return typeof value === 'number' ? value : undefined
}

function figure(record: LogRecord, name: string): string {
  return String(number(record, name) ?? '?')
}

function text(record: LogRecord, name: string): string {
  const value = record[name]
  return typeof value === 'string' ? value : ''
}
