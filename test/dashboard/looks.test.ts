/** The dashboard page with a full day of data, with one step, with no data, and with problems. */

import { test } from 'node:test'
import { ADD_MS, History } from '../../src/metrics/history.ts'
import { openBrowser } from '../harness/browser.ts'
import { sampleDay, siteKeyOf } from './sample-day.ts'
import { LOOKS, type Look, lookAt, serveHistory, WELL } from './stage.ts'

const browser = await openBrowser()
const day = await serveHistory(sampleDay(Date.now()))

function singleStep(): History {
  const history = new History(Date.now() - ADD_MS, () => undefined)
  const values = {
    ...{ workers: 2, storeUp: 1, 'reasons webdriver': 1, 'requestSeconds verify 0.0003': 4 },
    ...{ 'requests challenge 200 ok': 5, 'requests verify 200 ok': 3, 'requests verify 200 failed': 1 },
    ...{ 'difficulty sha256 18': 5, 'difficulty sha256 sum': 90, 'scores Infinity': 3, 'scores 0.39': 1 },
  }
  history.add(Date.now(), { values, sites: {} })
  return history
}

const empty = () => new History(Date.now() - 3000, () => undefined)
const counts = { workersRunning: 1, workersWithStore: 0, crashes: 3 }
const inTrouble = { ...WELL, isReady: false, isHealthy: false, ...counts }

/** All looks would take minutes: what differs between states is what is there, not its colours. */
const [LIGHT_DESKTOP, LIGHT_PHONE, DARK_DESKTOP, DARK_PHONE] = LOOKS

const STATES: readonly [name: string, url: string, query: string, looks: readonly (Look | undefined)[]][] = [
  ['half-hour', day, '', [LIGHT_DESKTOP, DARK_PHONE]],
  ['day', day, '?range=24h', [DARK_DESKTOP, LIGHT_PHONE]],
  ['site', day, `?site=${siteKeyOf(1)}`, [LIGHT_PHONE]],
  ['single-step', await serveHistory(singleStep()), '', [LIGHT_DESKTOP]],
  ['empty', await serveHistory(empty()), '', [LIGHT_PHONE]],
  ['trouble', await serveHistory(empty(), () => inTrouble), '', [DARK_DESKTOP]],
]

for (const [state, url, query, looks] of STATES) {
  test(`the dashboard has no axe violation, no overflow and no console error: ${state}`, async () => {
    for (const look of looks) await lookAt(browser, `${url}/dashboard${query}`, look!, state)
  })
}
