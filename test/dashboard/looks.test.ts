/** The dashboard page with a full day of data, with one step, with no data, and with problems. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADD_MS, History } from '../../src/dashboard/history.ts'
import { axeViolations, openBrowser, openPage } from '../harness/browser.ts'
import { numbers } from '../harness/values.ts'
import { sampleDay, siteKeyOf } from './sample-day.ts'
import { serveHistory, WELL } from './stage.ts'

type Look = readonly ['light' | 'dark', 'desktop' | 'phone']
const PHONE = { viewport: { width: 360, height: 760 }, hasTouch: true, isMobile: true }

/** Asserts that a page has no fault. */
async function lookAt(url: string, look: Look, state: string): Promise<void> {
  const [colorScheme, device] = look
  const about = `${state}, ${look.join(' ')}`
  const size = device === 'phone' ? PHONE : { viewport: { width: 1280, height: 900 } }
  const visit = await openPage(browser, url, { colorScheme, ...size })
  const { page } = visit
  await page.locator('body[data-loaded]').waitFor()
  // Plots are drawn by a ResizeObserver, which has run by the second frame.
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  assert.deepEqual(await axeViolations(page), [], about)
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  assert.equal(overflow, 0, `${about}: the page scrolls sideways`)
  assert.deepEqual(await page.evaluate(CUT_OFF), [], `${about}: texts are cut off`)
  assert.deepEqual(visit.troubles, [], about)
  await visit.close()
}

/** Texts of plots that stick out of them. */
const CUT_OFF = `[...document.querySelectorAll('.canvas svg text')].filter(text => {
  const [inner, outer] = [text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect()]
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1
}).map(text => text.textContent)`

const browser = await openBrowser()
const day = await serveHistory(sampleDay(Date.now()))

function singleStep(): History {
  const history = new History(Date.now() - ADD_MS, () => undefined)
  const values = numbers(
    'storeUp: 1, reasons webdriver: 1, requestSeconds verify 0.0003: 4, scores Infinity: 3, scores 0.39: 1',
    'requests challenge 200 ok: 5, requests verify 200 ok: 3, requests verify 200 failed: 1',
    'difficulty sha256 18: 5, difficulty sha256 sum: 90',
  )
  history.add(Date.now(), { values, sites: {} })
  return history
}

const empty = () => new History(Date.now() - 3000, () => undefined)
const counts = { workersRunning: 1, workersWithStore: 0, workerCrashes: 3 }
const inTrouble = { ...WELL, isReady: false, isHealthy: false, ...counts }

/** Each state is seen in one or two of the four looks: all would take minutes, and states differ in content, not in colours. */
const STATES: readonly [name: string, url: string, ...looks: Look[]][] = [
  ['half-hour', `${day}/dashboard`, ['light', 'desktop'], ['dark', 'phone']],
  ['day', `${day}/dashboard?range=24h`, ['dark', 'desktop'], ['light', 'phone']],
  ['site', `${day}/dashboard?site=${siteKeyOf(1)}`, ['light', 'phone']],
  ['single-step', `${await serveHistory(singleStep())}/dashboard`, ['light', 'desktop']],
  ['empty', `${await serveHistory(empty())}/dashboard`, ['light', 'phone']],
  ['trouble', `${await serveHistory(empty(), () => inTrouble)}/dashboard`, ['dark', 'desktop']],
]

for (const [state, url, ...looks] of STATES)
  test(`the dashboard has no axe violation, no overflow and no console error: ${state}`, async () => {
    for (const look of looks) await lookAt(url, look, state)
  })
