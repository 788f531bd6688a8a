/** The dashboard page with a full day of data, with one step, with no data, and with problems. */

import { test } from 'node:test'
import { ADD_MS, History } from '../../src/metrics/history.ts'
import { openBrowser } from '../harness/browser.ts'
import { emptySnapshot, sampleDay, siteKeyOf } from './sample-day.ts'
import { LOOKS, type Look, lookAt, type Served, serveHistory, WELL } from './stage.ts'

const browser = await openBrowser()
const day = await serveHistory(sampleDay(Date.now()))

function singleStep(): History {
  const history = new History(Date.now() - ADD_MS, () => undefined)
  const snapshot = emptySnapshot()
  Object.assign(snapshot.answers, { 'challenge 200 ok': 5, 'verify 200 ok': 3, 'verify 200 failed': 1 })
  snapshot.reasons.webdriver = 1
  snapshot.difficulties[18] = 5
  snapshot.scores[10] = 3
  snapshot.scores[3] = 1
  snapshot.latencies.verify!.counts[2] = 4
  history.add(Date.now(), snapshot, { running: 2, restarts: { crash: 0, hang: 0, roll: 0 } })
  return history
}

const empty = () => new History(Date.now() - 3000, () => undefined)
const inTrouble = {
  ...WELL,
  isReady: false,
  isHealthy: false,
  workersRunning: 1,
  workersWithStore: 0,
  crashes: 3,
}

/** All looks would take minutes: what differs between states is what is there, not its colours. */
const [LIGHT_DESKTOP, LIGHT_PHONE, DARK_DESKTOP, DARK_PHONE] = LOOKS

const STATES: readonly [name: string, served: Served, query: string, looks: readonly (Look | undefined)[]][] =
  [
    ['half-hour', day, '', [LIGHT_DESKTOP, DARK_PHONE]],
    ['day', day, '?range=24h', [DARK_DESKTOP, LIGHT_PHONE]],
    ['site', day, `?site=${siteKeyOf(1)}`, [LIGHT_PHONE]],
    ['single-step', await serveHistory(singleStep()), '', [LIGHT_DESKTOP]],
    ['empty', await serveHistory(empty()), '', [LIGHT_PHONE]],
    ['trouble', await serveHistory(empty(), () => inTrouble), '', [DARK_DESKTOP]],
  ]

for (const [state, served, query, looks] of STATES) {
  test(`without a fault: ${state}`, async () => {
    for (const look of looks) await lookAt(browser, `${served.url}/dashboard${query}`, look!, state)
  })
}
