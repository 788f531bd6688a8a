/**
 * Pressing Send in every state of the widget, in view, out of view and invisible, in every mode: what a person sees and hears
 * one second and ten seconds later. Prints what docs/accessibility.md tells of.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser, type VisitOptions } from '../harness/browser.ts'
import { type Fault, FaultyProxy } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { UNLIMITED } from '../harness/service.ts'
import {
  closePage,
  endless,
  execute,
  expire,
  formPage,
  GATE,
  startSurroundings,
  untilState,
  visit,
  WITH_CLOCK,
} from '../harness/widget.ts'

const { service, pages } = await startSurroundings(UNLIMITED)
/** Drawing in software would take most of the processor's time. */
const browser = await openBrowser({ flags: ['--disable-3d-apis', '--disable-gpu'] })
const { siteKey } = await service.createSite({ difficulty: { base: 16, min: 16, max: 16 } })

interface State {
  readonly attributes: string
  readonly fault?: Fault
  /** From the loaded page to the state. */
  readonly reach: (page: Page) => Promise<unknown>
}

const says = (words: string) => (page: Page) =>
  page.locator('pow-gate .text').filter({ hasText: words }).waitFor({ state: 'attached' })

const body = { error: 'No.', code: 'rate-limited' }
const busy = { status: 429, headers: { 'Retry-After': '60' }, body }
const refused = { status: 403, body: { error: 'No.', code: 'site-inactive' } }

const STATES: Readonly<Record<string, State>> = {
  'assets are loading': {
    attributes: 'auto="submit"',
    fault: { path: /worker|frame|page|wasm/, delayMs: 15_000 },
    reach: async page => {
      await execute(page)
      await untilState(page, 'working')
    },
  },
  'idle, `auto="submit"`': { attributes: 'auto="submit"', reach: async () => {} },
  'idle, `auto="off"`': { attributes: 'auto="off"', reach: async () => {} },
  '429, `Retry-After: 60`': {
    attributes: '',
    fault: { path: '/challenge', answer: busy },
    reach: says('Too many requests'),
  },
  offline: { attributes: 'auto="submit"', reach: page => page.context().setOffline(true) },
  'refused (403)': {
    attributes: '',
    fault: { path: '/challenge', answer: refused },
    reach: page => untilState(page, 'failed'),
  },
  'expired, `auto="off"`': {
    attributes: 'auto="off"',
    reach: expire,
  },
  'the service is down': {
    attributes: '',
    fault: { path: '/challenge', isDropped: true },
    reach: says('cannot be reached'),
  },
  solving: {
    attributes: 'threads="1"',
    fault: { path: '/challenge', answer: endless() },
    reach: page => page.waitForFunction('window.hasProgress'),
  },
}

/** Out of view: what 1280 x 1024 leaves at 400 % zoom, and a long way between the widget and the button. */
const SMALL = { width: 320, height: 256 }
const FAR = '<p style="height:1500px"></p>'
const VIEWS: Readonly<Record<string, { attributes: string; fields: string; options: VisitOptions }>> = {
  'in view': { attributes: '', fields: '', options: {} },
  'out of view': { attributes: '', fields: FAR, options: { viewport: SMALL } },
  invisible: { attributes: 'invisible', fields: FAR, options: { viewport: SMALL } },
}

const MODES = ['worker', 'frame', 'blob', 'page']

interface Cell {
  readonly state: string
  readonly view: string
  readonly mode: string
}

/** Each is walked in one page for each view and mode, because new profiles cost more than anything else here. */
const WALKS: readonly (readonly string[])[] = [
  ['assets are loading', '429, `Retry-After: 60`', 'the service is down'],
  ['idle, `auto="submit"`', 'idle, `auto="off"`', 'refused (403)', 'solving'],
  ['expired, `auto="off"`', 'offline'],
]

interface Look {
  /** What is written in the element, if the element is in view. */
  readonly seen: string
  readonly isFocused: boolean
  /** What the browser says at the element about the form. */
  readonly bubble: string
  /** Since Send: what the live region has said. */
  readonly said: readonly string[]
  readonly isSent: boolean
}

/** Before the service, and before the pages. */
const proxies = new Map<string, FaultyProxy[]>()
for (const [name, { fault }] of Object.entries(STATES)) {
  const both = [await FaultyProxy.start(service.port), await FaultyProxy.start(pages.port)]
  for (const proxy of both) {
    if (fault !== undefined) proxy.fail({ times: 1e6, ...fault })
    // Without WebAssembly, no page comes to the end of the counters that were tried for its endless challenge.
    if (name === 'solving') proxy.fail({ path: /wasm/, times: 1e6, isDropped: true })
  }
  proxies.set(name, both)
}

const LOOKS_MS = [1000, 10_500] as const // the element's own word of ten seconds comes with a tick of a second

/** Runs before the widget: notes its complaint, and that it solves. */
const PREPARE = `{
const { setValidity } = ElementInternals.prototype
ElementInternals.prototype.setValidity = function (...parts) { window.complaint = parts[1]; setValidity.apply(this, parts) }
addEventListener('progress', () => { window.hasProgress = true }, true)
}`

/** Looks after the click on Send. A text that is not rendered is neither seen nor heard. */
const RECORD = `{
const root = ${GATE}.shadowRoot
const part = name => root.querySelector(name)
const rendered = name => part(name).checkVisibility({ checkVisibilityCSS: true }) ? part(name).textContent : ''
const seen = () => {
  const { top, bottom, height } = part('.text').getBoundingClientRect()
  if (!rendered('.text') || top < -1 || bottom > innerHeight + 1) return ''
  const button = rendered('button')
  return [rendered('.text'), rendered('.detail'), rendered('.sending'), button && '[' + button + ']'].filter(Boolean).join(', ')
}
const said = []
let last = rendered('.text')
new MutationObserver(() => {
  const text = rendered('.text') && [rendered('.text'), rendered('.sending')].filter(Boolean).join(' ')
  if (text && text !== last) said.push((text + ' ' + rendered('.detail')).trim())
  last = text
}).observe(part('.body'), { childList: true, characterData: true, subtree: true, attributes: true })
let bubble = ''
document.addEventListener('invalid', event => setTimeout(() => { bubble = event.defaultPrevented ? '' : complaint }), true)
window.looks = []
let latest = ''
document.addEventListener('click', () => {
  said.length = 0
  setInterval(() => { latest = seen() || latest }, 50)
  for (const ms of [${LOOKS_MS}]) setTimeout(() => looks.push({
    seen: seen() || latest, isFocused: document.activeElement === ${GATE}, bubble, said: [...said], isSent: false
  }), ms)
}, { capture: true, once: true })
}`

const SENT: Look = { seen: '', isFocused: false, bubble: '', said: [], isSent: true }

let pageCount = 0

async function press(page: Page, cell: Cell): Promise<void> {
  const { attributes, reach } = STATES[cell.state]!
  const [gateway, site] = proxies.get(cell.state)!
  const view = VIEWS[cell.view]!
  const solver = `solver="${cell.mode}" worker-src="/powgate-worker.js"`
  const all = `site-key="${siteKey}" ${attributes} ${view.attributes} ${solver}`
  const script = `<script>${PREPARE}</script><script src="${gateway!.origin()}/widget.js"></script>`
  const path = `/${++pageCount}`
  pages.add(path, formPage(all, { script, fields: view.fields }))
  const url = site!.origin() + path
  await page.goto(url).catch(async (error: Error) => {
    // The form of the cell before may be sent as late as now.
    if (!error.message.includes('interrupted by another navigation')) throw error
    await page.waitForLoadState()
    await page.goto(url)
  })
  await reach(page)
  await page.evaluate(RECORD)
  // By keyboard: texts that change may move the button away from a pointer.
  await page.getByRole('button', { name: 'Send' }).press('Enter', { noWaitAfter: true })
}

/** Polls seldom, because many pages share the processor. */
async function lookAt(page: Page, index: number): Promise<Look> {
  await page.waitForTimeout(LOOKS_MS[index]! - (LOOKS_MS[index - 1] ?? 0))
  return eventually(60_000, `look ${index}`, async () => {
    if (page.url().endsWith('/received')) return SENT
    const look = (await page.evaluate(`window.looks?.[${index}]`).catch(() => undefined)) as Look | undefined
    if (look === undefined) await page.waitForTimeout(50)
    return look
  })
}

/** At most three pages open or change at a time, so that a page's first second is not that of all others. */
const opening = [Promise.resolve(), Promise.resolve(), Promise.resolve()]
let turns = 0

function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
  const lane = turns++ % opening.length
  const done = opening[lane]!.then(work)
  opening[lane] = done.then(
    () => {},
    () => {},
  )
  return done
}

/** Solving leaves the processor to nothing else, so those pages wait until Send was pressed in all others. */
let calmCells = (Object.keys(STATES).length - 1) * Object.keys(VIEWS).length * MODES.length
let beginSolving!: () => void
const maySolve = new Promise<void>(resolve => (beginSolving = resolve))

async function walk(states: readonly string[], view: string, mode: string): Promise<[Cell, Look[]][]> {
  const { options } = VIEWS[view]!
  const clock = states.some(state => state.startsWith('expired')) ? WITH_CLOCK : {}
  // Turning icons would leave no time for anything else.
  const all: VisitOptions = { reducedMotion: 'reduce', ...options, ...clock }
  const { page } = await inTurn(() => visit(browser, 'about:blank', all))
  const found: [Cell, Look[]][] = []
  for (const state of states) {
    const cell = { state, view, mode }
    if (state === 'solving') await maySolve
    await inTurn(() => press(page, cell))
    if (--calmCells === 0) beginSolving()
    const first = await lookAt(page, 0)
    found.push([cell, [first, first.isSent ? first : await lookAt(page, 1)]])
  }
  await closePage(page)
  return found
}

/** A line for each outcome, with the views and modes that have it. Count-downs are at different seconds in each. */
function outcomesOf(found: readonly [Cell, Look[]][]): string[] {
  const places = new Map<string, string[]>()
  for (const [{ state, view, mode }, looks] of found) {
    const told = looks.map(look => (look.isSent ? 'sent' : JSON.stringify(look)))
    const outcome = `${state}: ${told.join(' and then ')}`.replace(/\bin\s\d+\s/g, 'in N ')
    places.set(outcome, [...(places.get(outcome) ?? []), `${view} ${mode}`])
  }
  return [...places].map(([outcome, where]) => `${outcome}, where it is ${where.join(', ')}`)
}

function isSilent([, [first]]: [Cell, Look[]]): boolean {
  const { isSent, seen, said, bubble } = first!
  return !isSent && (seen === '' || (said.length === 0 && bubble === ''))
}

test('Send shows something and says something within a second, in every state, view and mode', async t => {
  const walks = WALKS.flatMap(states =>
    Object.keys(VIEWS).flatMap(view => MODES.map(mode => walk(states, view, mode))),
  )
  const first = (await Promise.all(walks)).flat()
  // A second time on a page of its own: a machine may be busy with other things, and the widget is not to blame for that.
  const again = first.map(each =>
    isSilent(each) ? walk([each[0].state], each[0].view, each[0].mode) : [each],
  )
  const found = (await Promise.all(again)).flat()
  for (const line of outcomesOf(found)) t.diagnostic(line)
  const silent = found.filter(isSilent)
  assert.deepEqual(
    silent.map(([cell, [first]]) => ({ ...cell, ...first })),
    [],
  )
  assert.equal(found.length, Object.keys(STATES).length * Object.keys(VIEWS).length * MODES.length)
})
