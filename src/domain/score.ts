/**
 * The confidence score: 1 is a person, 0 a bot. Each signal subtracts its weight. What a client claims can lower the score,
 * never raise it. Reasons go to logs and metrics, never to the browser.
 */

import { ENVIRONMENT_FLAGS, type Environment } from '../protocol/wire.ts'

/** Defaults; docs/reference/limits.md#score says what each means. */
export const SCORE_WEIGHTS = {
  webdriver: 0.6,
  chromeAbsent: 0.15,
  swiftShader: 0.25,
  noPlugins: 0.1,
  notificationDenied: 0.05,
  zeroScreen: 0.3,
  noLanguages: 0.3,
  environmentMissing: 0.2,
  solveTimeImpossible: 0.2,
  /** Subtracted for each failed verification in the last minute, up to six. */
  recentFailure: 0.05,
} as const

export type ScoreReason = keyof typeof SCORE_WEIGHTS

/** Why a solution failed or scored below 1. */
export type JudgementReason = ScoreReason | 'ip-blocked' | 'ip-not-allowed' | 'proof-wrong' | 'test-key'

export type ScoreWeights = Readonly<Record<ScoreReason, number>>

export const SCORE_REASONS = Object.keys(SCORE_WEIGHTS) as readonly ScoreReason[]

export interface ScoreSignals {
  readonly environment: Environment | undefined
  /** The time that the client claims. */
  readonly solveTimeMs: number | undefined
  /** The time from challenge to solution by the hosts' clocks. Below 0 if the issuer's is ahead, which lowers no score. */
  readonly elapsedMs: number
  /** Only the log tells it; it lowers no score. */
  readonly difficulty: number
  /** Failures in the last minute, by `countedFailures`. */
  readonly addressFailures: number
}

export interface Score {
  /** 0 to 1, in hundredths. */
  readonly score: number
  readonly reasons: readonly ScoreReason[]
}

/** No flag is set, so it lowers no score: for sites that have the widget read no signals. */
export const PLAIN_ENVIRONMENT = Object.fromEntries(
  ENVIRONMENT_FLAGS.map(flag => [flag, false]),
) as Required<Environment>

/** Each is set in over three of a thousand honest browsers (test/domain/personas.test.ts), so one alone proves nothing. */
const COMMON_FLAGS: readonly string[] = ['chromeAbsent', 'swiftShader', 'noPlugins', 'notificationDenied']

/** Tolerates clocks with a coarse resolution. */
const SOLVE_TIME_SLACK_MS = 50
const RECENT_FAILURES_MAX = 6

/**
 * Returns how many of an address' failures lower a score: at most one if it has an accepted proof, because a neighbour may fail on
 * purpose. A bot that tries signals pays for one failure at most, too: its solutions spend their nonces, so they are accepted proofs.
 * It gains little by that: a wrong counter gives it nothing.
 */
export function countedFailures(failures: number, accepted: number): number {
  return accepted > 0 ? Math.min(1, failures) : failures
}

/** Shared by most visitors, so that no list is made for them. */
const NO_REASONS: readonly ScoreReason[] = []

export function scoreOf(signals: ScoreSignals, weights: ScoreWeights = SCORE_WEIGHTS): Score {
  const found = reasonsOf(signals, weights)
  if (found.length === 0) return { score: 1, reasons: found }
  const reasons = found.filter(reason => weights[reason] > 0)
  let penalty = 0
  for (const reason of reasons) penalty += penaltyOf(reason, signals, weights)
  return { score: Math.max(0, Math.round((1 - penalty) * 100) / 100), reasons }
}

export function penaltyOf(reason: ScoreReason, signals: ScoreSignals, weights: ScoreWeights): number {
  const times = reason === 'recentFailure' ? Math.min(RECENT_FAILURES_MAX, signals.addressFailures) : 1
  return weights[reason] * times
}

export function suspiciousFlags(environment: Environment): readonly (keyof Environment)[] {
  return ENVIRONMENT_FLAGS.filter(name => environment[name] === true)
}

/** A loop, because `find` would make a closure for each visitor: 100 bytes of garbage, which `npm run bench` bounds. */
function firstSuspiciousFlag(environment: Environment): keyof Environment | undefined {
  for (const name of ENVIRONMENT_FLAGS) if (environment[name] === true) return name
  return undefined
}

function reasonsOf(signals: ScoreSignals, weights: ScoreWeights): readonly ScoreReason[] {
  let reasons = environmentReasons(signals.environment, weights)
  const { elapsedMs, solveTimeMs } = signals
  if (elapsedMs >= 0 && solveTimeMs !== undefined && solveTimeMs > elapsedMs + SOLVE_TIME_SLACK_MS)
    reasons = [...reasons, 'solveTimeImpossible']
  return signals.addressFailures > 0 ? [...reasons, 'recentFailure'] : reasons
}

function environmentReasons(
  environment: Environment | undefined,
  weights: ScoreWeights,
): readonly ScoreReason[] {
  if (environment === undefined) return ['environmentMissing']
  const flag = firstSuspiciousFlag(environment)
  if (flag === undefined) return NO_REASONS
  const flags = suspiciousFlags(environment)
  // A site that changes a common flag's weight wants it to count alone, too.
  const isIgnored = flags.length === 1 && COMMON_FLAGS.includes(flag) && weights[flag] === SCORE_WEIGHTS[flag]
  return isIgnored ? NO_REASONS : flags
}
