/**
 * Kinds of honest visitors and the score of each. Each kind sends the signals that its browsers are known to send. The share of
 * each kind is our estimate, so these tests show which kinds a change of the score affects, and not how many people.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  countedFailures,
  PLAIN_ENVIRONMENT,
  SCORE_REASONS,
  type ScoreSignals,
  scoreOf,
} from '../../src/domain/score.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { FLAGS } from '../harness/client.ts'

/** The largest share of honest visits in which a reason may fire, as in the tests of github.com/WebDecoy/FCaptcha (bench/README.md). */
const REASON_SHARE_MAX = 0.003
const FAILURE_SHARE_MAX = 0.001

const PLAIN: ScoreSignals = {
  environment: PLAIN_ENVIRONMENT,
  solveTimeMs: 250,
  elapsedMs: 400,
  difficulty: SITE_DEFAULTS.difficulty.base,
  addressFailures: 0,
}

/** @param names the flags that are set, separated by spaces */
const flags = (names: string): Partial<ScoreSignals> => ({
  environment: Object.fromEntries(FLAGS.map(flag => [flag, names.split(' ').includes(flag)])),
})

/** Failures and accepted proofs of the visitor's address in the last minutes: beside a proof, all failures count as one. */
const failures = (count: number, accepted: number): Partial<ScoreSignals> => ({
  addressFailures: countedFailures(count, accepted),
})

const slow = (elapsedMs: number) => ({ elapsedMs, solveTimeMs: elapsedMs - 200 })

const DENIED = 'notificationDenied'
/** Our estimate of who denies notifications, among visitors who differ in something else. */
const DENYING = 0.08

/** The rest of all honest visits are plain. `change` is how these differ: flags, or other signals. A comment is the source of the rows up to the next one. */
const VISITS: readonly (readonly [percent: number, who: string, change: string | Partial<ScoreSignals>])[] = [
  // Bilogrevic et al., USENIX Security 2021: one in ten is granted. fingerprintjs/BotD issue 185: Samsung Internet
  [7, 'notifications denied', DENIED],
  // antoinevastel/fpscanner issue 45: Telegram sends no "wv"
  [0.75, 'web view', 'chromeAbsent'],
  // fingerprintjs/BotD issue 135; web-platform-tests pull request 29652
  [0.6 * (1 - DENYING), 'PDF files are downloaded', 'noPlugins'],
  [0.6 * DENYING, 'PDF files are downloaded, denied', `noPlugins ${DENIED}`],
  // Mozilla wiki, Security/Fingerprinting: times in steps of 100 ms, with as much jitter
  [0.1, 'privacy browser', { elapsedMs: 300, solveTimeMs: 440 }],
  [0.05, 'privacy browser without plugins', 'noPlugins'],
  // blink-dev, 24 March 2025: not uncommon in the public sector
  [0.6 * (1 - DENYING), 'VM without GPU', 'swiftShader'],
  [0.6 * DENYING, 'VM without GPU, denied', `swiftShader ${DENIED}`],
  // Chrome policies DefaultNotificationsSetting and AlwaysOpenPdfExternally, without GPU
  [0.06, 'virtual desktop under policies', `swiftShader noPlugins ${DENIED}`],
  [0.04, 'desktop under policies', `noPlugins ${DENIED}`],
  // QupZilla issue 2388: QtWebEngine denies notifications
  [0.025, 'kiosk without plugins', `noPlugins ${DENIED}`],
  [0.025, 'kiosk of QtWebEngine', `chromeAbsent noPlugins ${DENIED}`],
  // WhichBrowser/Parser-PHP issue 179: QtWebEngine in them
  [0.15, 'television', 'chromeAbsent'],
  [0.015, 'console', 'noLanguages'],
  // our estimates
  [2, 'old phone without WebAssembly', slow(6000)],
  [0.5, 'screen reader', slow(900)],
  [0.02, 'browser driven for a person (w3c/webdriver issue 872)', 'webdriver'],
  [0.1, 'own client without signals', { environment: undefined }],
  [0.03, 'proxy of a company, where a neighbour failed within the minute', failures(1, 60)],
  // Giotsas, Fayed, 2025; one in 100 has a griefer
  [0.015, 'campus or carrier NAT', failures(9, 60)],
  // our estimates
  [0.03, 'VPN, whose exits bots share', failures(3, 1)],
  [0.3, 'slow network', { elapsedMs: 30_000 }],
  [0.1, 'tab in the background', slow(90_000)],
  [0.01, 'hosts whose clocks differ', { elapsedMs: -20 }],
]

const judged = VISITS.map(([percent, who, change]) => {
  const signals = typeof change === 'string' ? flags(change) : change
  return { who, share: percent / 100, ...scoreOf({ ...PLAIN, ...signals }) }
})

const shareOf = (matches: (visit: (typeof judged)[number]) => boolean): number =>
  judged.filter(matches).reduce((sum, { share }) => sum + share, 0)

test('no reason fires for more than three in a thousand honest visits', () => {
  for (const reason of SCORE_REASONS) {
    const share = shareOf(({ reasons }) => reasons.includes(reason))
    assert.ok(share <= REASON_SHARE_MAX, `${reason}: ${share}`)
  }
})

test('at most one honest visit in a thousand fails, and nobody is near the threshold', () => {
  const { threshold } = SITE_DEFAULTS
  assert.ok(shareOf(({ score }) => score < threshold) <= FAILURE_SHARE_MAX)
  // Whose score is nearer to the threshold than 0.1 passes or fails by chance. (As a fraction, 0.6 - 0.5 is below 0.1.)
  const near = judged.filter(({ score }) => Math.round(100 * Math.abs(score - threshold)) < 10)
  assert.deepEqual(near, [])
})

test('headless browsers that hide only navigator.webdriver fail', () => {
  const { score } = scoreOf({ ...PLAIN, ...flags('chromeAbsent swiftShader noPlugins notificationDenied') })
  assert.ok(score < SITE_DEFAULTS.threshold, String(score))
})
