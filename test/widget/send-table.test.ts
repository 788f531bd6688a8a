/**
 * Pressing Send in every state of the widget, in view, out of view and invisible, in every mode: what a person sees and hears
 * one second and ten seconds later. Prints the table of docs/evidence/screen-reader.md.
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
pages.add('/powgate-worker.js', await (await fetch(`${service.url}/widget/worker.js`)).text())

interface State {
  readonly attributes: string
  readonly faults?: readonly Fault[]
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
    faults: [{ path: /worker|frame|page|wasm/, delayMs: 15_000 }],
    reach: async page => {
      await execute(page)
      await untilState(page, 'working')
    },
  },
  'idle, `auto="submit"`': { attributes: 'auto="submit"', reach: async () => {} },
  'idle, `auto="off"`': { attributes: 'auto="off"', reach: async () => {} },
  '429, `Retry-After: 60`': {
    attributes: '',
    faults: [{ path: '/challenge', answer: busy }],
    reach: says('Too many requests'),
  },
  offline: { attributes: 'auto="submit"', reach: page => page.context().setOffline(true) },
  'refused (403)': {
    attributes: '',
    faults: [{ path: '/challenge', answer: refused }],
    reach: page => untilState(page, 'failed'),
  },
  'expired, `auto="off"`': {
    attributes: 'auto="off"',
    reach: expire,
  },
  'the service is down': {
    attributes: '',
    faults: [{ path: '/challenge', isDropped: true }],
    reach: says('cannot be reached'),
  },
  solving: {
    attributes: 'threads="1"',
    // Without WebAssembly, no page comes to the end of the counters that were tried for this challenge.
    faults: [
      { path: '/challenge', answer: endless() },
      { path: /wasm/, isDropped: true },
    ],
    reach: page => page.waitForFunction('window.hasProgress'),
  },
}

/** Out of view: what 1280 x 1024 leaves at 400 % zoom, and a long way between the widget and the button. */
const SMALL = { width: 320, height: 256 }
const FAR = '<p style="height:1500px"></p>'
const VIEWS: Readonly<Record<string, { attributes: string; before: string; options: VisitOptions }>> = {
  'in view': { attributes: '', before: '', options: {} },
  'out of view': { attributes: '', before: FAR, options: { viewport: SMALL } },
  invisible: { attributes: 'invisible', before: FAR, options: { viewport: SMALL } },
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
for (const [name, { faults = [] }] of Object.entries(STATES)) {
  const both = [await FaultyProxy.start(service.port), await FaultyProxy.start(pages.port)]
  for (const proxy of both) for (const fault of faults) proxy.fail({ times: 1e6, ...fault })
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
  pages.add(path, formPage(all, { script }).replace('<button>', `${view.before}<button>`))
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
let beginSolving = () => {}
const maySolve = new Promise<void>(resolve => {
  beginSolving = resolve
})

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

/** Count-downs are at different seconds in different cells. */
const plain = (text: string) => text.replace(/\bin\s\d+\s/g, 'in N ')

function wordsOf({ seen, isFocused, bubble, isSent }: Look): string {
  if (isSent) return 'the form is sent'
  return [plain(seen), isFocused && 'with the focus', bubble && `bubble: ${bubble}`]
    .filter(Boolean)
    .join('; ')
}

function heardIn({ said, bubble, isSent }: Look, before?: Look): string {
  const fresh = said.slice(before?.said.length ?? 0).map(plain)
  if (bubble !== '' && before?.bubble !== bubble) fresh.push(bubble)
  return isSent ? '' : fresh.filter((text, index) => text !== fresh[index - 1]).join('; ')
}

/** Cells whose outcomes are equal share a row. */
function tableOf(found: readonly [Cell, Look[]][]): string[] {
  const rows = new Map<string, { state: string; outcome: string; cells: Cell[] }>()
  for (const [cell, [first, then]] of found) {
    const outcome = [wordsOf(first!), heardIn(first!), wordsOf(then!), heardIn(then!, first)].join(' | ')
    const key = `${cell.state} ${outcome}`
    if (!rows.has(key)) rows.set(key, { state: cell.state, outcome, cells: [] })
    rows.get(key)!.cells.push(cell)
  }
  const every = (names: readonly string[], all: readonly string[]) =>
    new Set(names).size === all.length ? 'all' : [...new Set(names)].join(', ')
  const lines = [...rows.values()].map(({ state, outcome, cells: own }) => {
    const view = every(
      own.map(cell => cell.view),
      Object.keys(VIEWS),
    )
    const mode = every(
      own.map(cell => cell.mode),
      MODES,
    )
    return `| ${state} | ${view} | ${mode} | ${outcome} |`
  })
  const head = '| state | widget | mode | seen after 1 s | heard | seen after 10 s | heard |'
  return [head, '|---|---|---|---|---|---|---|', ...lines]
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
  for (const line of tableOf(found)) t.diagnostic(line)
  const silent = found.filter(isSilent)
  assert.deepEqual(
    silent.map(([cell, [first]]) => ({ ...cell, ...first })),
    [],
  )
  assert.equal(found.length, Object.keys(STATES).length * Object.keys(VIEWS).length * MODES.length)
})
