/**
 * Kinds of honest visitors and the score of each. Each kind sends the signals that its browsers are known to send; the
 * source is named. The share of each kind is our estimate. So these tests show which kinds a change of the score
 * affects, and not how many people a signal affects on the web.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isShared,
  PLAIN_ENVIRONMENT,
  SCORE_REASONS,
  type ScoreSignals,
  scoreOf,
} from '../../src/domain/score.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { FLAGS } from '../harness/client.ts'

/** Of honest visits, for each reason. FCaptcha holds its signals to as much (bench/README.md there). */
const REASON_SHARE_MAX = 0.003
const FAILURE_SHARE_MAX = 0.001
/** Whoever is nearer to the threshold passes or fails by chance. */
const MARGIN = 0.1

/** A share of a persona's visits that differs from a plain one, and how: flags, or other signals. The rest is plain. */
type Visit = readonly [share: number, change: string | Partial<ScoreSignals>]

/** @param percent of all honest visits, @param from where it is known from */
const persona = (percent: number, name: string, from: string, ...visits: Visit[]) => ({
  ...{ percent, name, from },
  visits: visits.map(
    ([share, change]) => [share, typeof change === 'string' ? flags(change) : change] as const,
  ),
})

const PLAIN: ScoreSignals = {
  environment: PLAIN_ENVIRONMENT,
  solveTimeMs: 250,
  elapsedMs: 400,
  difficulty: SITE_DEFAULTS.difficulty.base,
  addressFailures: 0,
}

/** @param names of flags, separated by spaces */
const flags = (names: string): Partial<ScoreSignals> => ({
  environment: Object.fromEntries(FLAGS.map(flag => [flag, names.split(' ').includes(flag)])),
})

/** Failures of the address, of which the service counts one where most people behind it succeed. */
const failures = (count: number, accepted: number): Partial<ScoreSignals> => ({
  addressFailures: isShared(count, accepted) ? Math.min(1, count) : count,
})

const slow = (elapsedMs: number) => ({ elapsedMs, solveTimeMs: elapsedMs - 200 })

const DENIED = 'notificationDenied'
const PERSONAS = [
  persona(50.04, 'phone', 'no plugins are asked of phones (src/widget/signals.ts)'),
  persona(28.19, 'desktop', 'HTML standard: five plugins where PDF is shown'),
  persona(5, 'desktop, denied', 'Bilogrevic et al., USENIX Security 2021: one in ten is granted', [
    1,
    DENIED,
  ]),
  persona(2, 'phone, denied', 'fingerprintjs/BotD issue 185: Samsung Internet', [1, DENIED]),
  persona(5, 'web view', 'antoinevastel/fpscanner issue 45: Telegram sends no "wv"', [0.15, 'chromeAbsent']),
  persona(
    0.6,
    'PDF files are downloaded',
    'fingerprintjs/BotD issue 135; web-platform-tests pull request 29652',
    [0.92, 'noPlugins'],
    [0.08, `noPlugins ${DENIED}`],
  ),
  persona(
    1,
    'privacy browser',
    'Mozilla wiki, Security/Fingerprinting: times in steps of 100 ms, with as much jitter',
    [0.1, { elapsedMs: 300, solveTimeMs: 440 }],
    [0.05, 'noPlugins'],
  ),
  persona(
    0.6,
    'VM without GPU',
    'blink-dev, 24 March 2025: not uncommon in the public sector',
    [0.92, 'swiftShader'],
    [0.08, `swiftShader ${DENIED}`],
  ),
  persona(
    0.1,
    'virtual desktop under policies',
    'Chrome policies DefaultNotificationsSetting and AlwaysOpenPdfExternally, without GPU',
    [0.6, `swiftShader noPlugins ${DENIED}`],
    [0.4, `noPlugins ${DENIED}`],
  ),
  persona(
    0.05,
    'kiosk without plugins',
    'QupZilla issue 2388: QtWebEngine denies notifications',
    [0.5, `noPlugins ${DENIED}`],
    [0.5, `chromeAbsent noPlugins ${DENIED}`],
  ),
  persona(
    0.3,
    'television, console',
    'WhichBrowser/Parser-PHP issue 179: QtWebEngine in them',
    [0.5, 'chromeAbsent'],
    [0.05, 'noLanguages'],
  ),
  persona(2, 'old phone without WebAssembly', 'bench/simulator/populations.json', [1, slow(6000)]),
  persona(0.5, 'screen reader', 'browsers do not tell pages of it', [1, slow(900)]),
  persona(0.02, 'browser driven for a person', 'w3c/webdriver issue 872', [1, 'webdriver']),
  persona(0.1, 'own client without signals', 'environment is optional', [1, { environment: undefined }]),
  persona(1, 'proxy of a company', 'a neighbour failed once within the minute', [0.03, failures(1, 60)]),
  persona(1.5, 'campus or carrier NAT', 'Giotsas, Fayed, 2025; one in 100 has a griefer', [
    0.01,
    failures(9, 60),
  ]),
  persona(1.5, 'VPN', 'its exits are shared with bots, some of which fail', [0.02, failures(3, 1)]),
  persona(0.3, 'slow network', 'a challenge that travels for long', [1, { elapsedMs: 30_000 }]),
  persona(0.1, 'tab in the background', 'browsers slow it', [1, slow(90_000)]),
  persona(0.1, 'wrong clock', "only the service's hosts count, and may differ", [0.1, { elapsedMs: -20 }]),
]

/** Every kind of visit with its share of all visits. */
const VISITS = PERSONAS.flatMap(({ name, percent, visits }) =>
  visits.map(([share, change]) => {
    return { name, share: (share * percent) / 100, judged: scoreOf({ ...PLAIN, ...change }) }
  }),
)

const shareOf = (matches: (visit: (typeof VISITS)[number]) => boolean): number =>
  VISITS.filter(matches).reduce((sum, { share }) => sum + share, 0)

test('personas are all honest visits, and each has a source', () => {
  assert.ok(PERSONAS.length >= 14)
  const sum = PERSONAS.reduce((total, { percent }) => total + percent, 0)
  assert.ok(Math.abs(sum - 100) < 1e-9, String(sum))
  for (const { from, visits } of PERSONAS)
    assert.ok(from.length > 10 && visits.reduce((total, [share]) => total + share, 0) <= 1)
})

test('no reason fires for more than three in a thousand', () => {
  const over = SCORE_REASONS.map(reason => [reason, shareOf(({ judged }) => judged.reasons.includes(reason))])
  assert.deepEqual(
    over.filter(([, share]) => (share as number) > REASON_SHARE_MAX),
    [],
  )
})

test('at most one in a thousand fails, and nobody is near the threshold', () => {
  const { threshold } = SITE_DEFAULTS
  const failed = VISITS.filter(({ judged }) => judged.score < threshold)
  assert.ok(shareOf(({ judged }) => judged.score < threshold) <= FAILURE_SHARE_MAX, JSON.stringify(failed))
  const near = VISITS.filter(
    ({ judged }) => Math.round(100 * Math.abs(judged.score - threshold)) < 100 * MARGIN,
  )
  assert.deepEqual(near, [])
})

test('headless browsers that hide only navigator.webdriver fail', () => {
  const { score } = scoreOf({ ...PLAIN, ...flags('chromeAbsent swiftShader noPlugins notificationDenied') })
  assert.ok(score < SITE_DEFAULTS.threshold, String(score))
})
