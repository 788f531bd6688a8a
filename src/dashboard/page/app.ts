/** The dashboard's script: fetches the numbers every ten seconds. */

import type { DashboardData } from '../history.ts'
import { Choices } from './choices.ts'
import { Cursor } from './cursor.ts'
import { byId, h, setText } from './dom.ts'
import { clock, duration, moment } from './format.ts'
import type { TimeFrame } from './line-plot.ts'
import { makePanels } from './panels.ts'
import { contactProblem, type Problem, problemsOf } from './problems.ts'
import { timeSpan } from './scale.ts'
import { Tiles } from './tiles.ts'

const POLL_MS = 10_000
const ANSWER_MS = 8000
const TICK_MS = 1000

const cursor = new Cursor()
const tiles = new Tiles()
const choices = new Choices(() => void poll())
const panels = makePanels(cursor, siteKey => choices.chooseSite(siteKey))
const freshness = byId('freshness', HTMLElement)
const problemList = byId('problems', HTMLElement)

let latest: DashboardData | undefined
let lastOkMs: number | undefined
let hasFailed = false
/** The number of the latest request: a late answer must not replace a newer one. */
let asked = 0
let shownProblems = ''

byId('tiles', HTMLElement).append(tiles.element)
byId('plots', HTMLElement).append(...panels.map(({ element }) => element))
setText(byId('place', HTMLElement), location.host)
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) void poll()
})
setInterval(() => {
  if (!document.hidden) void poll()
}, POLL_MS)
setInterval(showContact, TICK_MS)
void poll()

async function poll(): Promise<void> {
  const number = ++asked
  try {
    const response = await fetch(`dashboard/data.json?${choices.query}`, {
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    const data: DashboardData = await response.json()
    if (number !== asked) return
    latest = data
    lastOkMs = Date.now()
    hasFailed = false
    show(data)
  } catch {
    if (number === asked) hasFailed = true
  }
  showContact()
}

function show(data: DashboardData): void {
  const frame = frameOf(data)
  choices.showSites(data)
  for (const panel of panels) panel.update(data, frame)
  setText(byId('since', HTMLElement), moment(data.startedAtMs))
  document.body.dataset.loaded = 'true'
}

function frameOf({ range, nowMs, startedAtMs, times, seconds, store }: DashboardData): TimeFrame {
  const outages: { fromMs: number; toMs: number }[] = []
  for (const [index, toMs] of times.entries()) {
    if (store.up[index] === 1) continue
    const previous = outages.at(-1)
    if (previous !== undefined && previous.toMs === times[index - 1]) previous.toMs = toMs
    else outages.push({ fromMs: toMs - seconds[index]! * 1000, toMs })
  }
  return { times, outages, ...timeSpan(range, nowMs, startedAtMs) }
}

function showContact(): void {
  const now = Date.now()
  const contact = contactProblem(lastOkMs, hasFailed, now)
  if (lastOkMs !== undefined) {
    const age = duration((now - lastOkMs) / 1000)
    setText(
      freshness,
      contact === undefined ? `Updated ${age} ago` : `Stale: last updated ${age} ago, at ${clock(lastOkMs)}`,
    )
  }
  document.body.classList.toggle('stale', contact !== undefined)
  if (latest !== undefined) tiles.update(latest, contact === undefined)
  showProblems(contact === undefined ? (latest === undefined ? [] : problemsOf(latest)) : [contact])
}

/** Unchanged texts stay, because screen readers announce each change. */
function showProblems(problems: readonly Problem[]): void {
  const words = problems.map(({ level, text }) => `${level} ${text}`).join('\n')
  const isEmpty = latest !== undefined && latest.sites.length === 0 && latest.traffic.refusals.length === 0
  const state = `${words}${isEmpty}`
  document.title = `${problems.some(({ level }) => level === 'bad') ? '✕ ' : problems.length > 0 ? '! ' : ''}powgate dashboard`
  if (state === shownProblems) return
  shownProblems = state
  const rows = problems.map(({ level, text }) => h('p', { class: `problem ${level}` }, text))
  const empty = 'No requests yet. Numbers appear here within ten seconds of the first one.'
  if (isEmpty) rows.push(h('p', { class: 'problem' }, empty))
  problemList.replaceChildren(...rows)
}
