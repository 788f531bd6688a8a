/**
 * The confidence score: 1.0 is a person, 0.0 a bot. The score starts at 1, and each signal subtracts its weight. A client's
 * own claims can lower the score, never raise it. The functions are pure: every signal is an argument.
 *
 * Reasons are for logs and metrics; they never reach the browser.
 */

import type { Environment } from '../protocol/wire.ts'

/** The weights of the signals, unless a site sets others. docs/reference/limits.md has the same table. */
export const SCORE_WEIGHTS = {
  webdriver: 0.6,
  chromeAbsent: 0.15,
  swiftShader: 0.25,
  noPlugins: 0.1,
  notificationDenied: 0.05,
  zeroScreen: 0.3,
  noLanguages: 0.3,
  /** The client sent no `environment`. */
  environmentMissing: 0.2,
  /** `solveTimeMs` is more than the time from the challenge to the solution. */
  solveTimeImpossible: 0.2,
  /** The fingerprint came from many addresses within minutes. Beside no other reason, `fingerprintSpread` is only reused. */
  fingerprintReused: 0.15,
  fingerprintSpread: 0.35,
  /** For each failed verification of the address in the last minute, up to six. */
  recentFailure: 0.05,
} as const

export type ScoreReason = keyof typeof SCORE_WEIGHTS

/** Why a solution failed or scored below 1. */
export type JudgementReason = ScoreReason | 'ip-blocked' | 'ip-not-allowed' | 'proof-wrong' | 'test-key'

/** The weight of each signal, 0 to 1. */
export type ScoreWeights = Readonly<Record<ScoreReason, number>>

export const SCORE_REASONS = Object.keys(SCORE_WEIGHTS) as readonly ScoreReason[]

export interface ScoreSignals {
  readonly environment: Environment | undefined
  /** The client's claim, milliseconds. */
  readonly solveTimeMs: number | undefined
  /**
   * Server time from the challenge's issue to its solution, milliseconds. If below 0, the challenge was issued by a host whose
   * clock is ahead. The time that the solution took is then unknown, and lowers no score.
   */
  readonly elapsedMs: number
  /** Bits; for logs. */
  readonly difficulty: number
  /** Estimated number of addresses that sent this fingerprint to this site in the last minutes. */
  readonly fingerprintAddresses: number
  /** Failed verifications of the address in the last minute. */
  readonly addressFailures: number
}

export interface Score {
  /** 0 to 1, in hundredths. */
  readonly score: number
  readonly reasons: readonly ScoreReason[]
}

/** The signals of a browser that is not suspicious. */
export const PLAIN_ENVIRONMENT: Required<Environment> = {
  webdriver: false,
  chromeAbsent: false,
  swiftShader: false,
  noPlugins: false,
  notificationDenied: false,
  zeroScreen: false,
  noLanguages: false,
}

const ENVIRONMENT_FLAGS = Object.keys(PLAIN_ENVIRONMENT) as readonly (keyof Environment)[]

/**
 * Flags that more than three in a thousand honest browsers set, each for reasons of its own (test/domain/personas.test.ts).
 * One of them alone proves nothing. Headless browsers set several.
 */
const COMMON_FLAGS: readonly string[] = ['chromeAbsent', 'swiftShader', 'noPlugins', 'notificationDenied']

/** A claimed time may exceed the measured one by this much, because of clock granularity. */
const SOLVE_TIME_SLACK_MS = 50
/** Common devices share a fingerprint, so a few addresses prove nothing. */
const FINGERPRINT_REUSED_ADDRESSES = 32
const FINGERPRINT_SPREAD_ADDRESSES = 256
const RECENT_FAILURES_MAX = 6

const NO_REASONS: readonly ScoreReason[] = []

/** The score and its reasons. A signal whose weight is 0 is no reason. */
export function scoreOf(signals: ScoreSignals, weights: ScoreWeights = SCORE_WEIGHTS): Score {
  const signs = reasonsOf(signals, weights)
  if (signs.length === 0) return { score: 1, reasons: signs }
  const reasons = weights === SCORE_WEIGHTS ? signs : signs.filter(reason => weights[reason] > 0)
  let penalty = 0
  for (const reason of reasons) penalty += penaltyOf(reason, signals, weights)
  return { score: Math.max(0, Math.round((1 - penalty) * 100) / 100), reasons }
}

/** How much a reason subtracts from the score. */
export function penaltyOf(reason: ScoreReason, signals: ScoreSignals, weights: ScoreWeights): number {
  const times = reason === 'recentFailure' ? Math.min(RECENT_FAILURES_MAX, signals.addressFailures) : 1
  return weights[reason] * times
}

/** The flags of an environment that are set. */
export function suspiciousFlags(environment: Environment): readonly (keyof Environment)[] {
  return ENVIRONMENT_FLAGS.filter(name => environment[name] === true)
}

/** Most visitors have no reasons; no list is made for them. */
function reasonsOf(signals: ScoreSignals, weights: ScoreWeights): readonly ScoreReason[] {
  let reasons = environmentReasons(signals.environment, weights)
  const { elapsedMs, solveTimeMs } = signals
  if (elapsedMs >= 0 && solveTimeMs !== undefined && solveTimeMs > elapsedMs + SOLVE_TIME_SLACK_MS) {
    reasons = [...reasons, 'solveTimeImpossible']
  }
  if (signals.addressFailures > 0) reasons = [...reasons, 'recentFailure']
  if (signals.fingerprintAddresses < FINGERPRINT_REUSED_ADDRESSES) return reasons
  // Anybody can send a popular phone's fingerprint from many addresses. So alone it takes nobody below a threshold of 0.7.
  const isSpread = signals.fingerprintAddresses >= FINGERPRINT_SPREAD_ADDRESSES && reasons.length > 0
  return [...reasons, isSpread ? 'fingerprintSpread' : 'fingerprintReused']
}

function environmentReasons(
  environment: Environment | undefined,
  weights: ScoreWeights,
): readonly ScoreReason[] {
  if (environment === undefined) return ['environmentMissing']
  for (const flag of ENVIRONMENT_FLAGS) {
    if (environment[flag] !== true) continue
    const flags = suspiciousFlags(environment)
    // A site that sets the weight itself means the flag alone, too.
    const isUsual = weights[flag] === SCORE_WEIGHTS[flag]
    return flags.length === 1 && isUsual && COMMON_FLAGS.includes(flag) ? NO_REASONS : flags
  }
  return NO_REASONS
}
