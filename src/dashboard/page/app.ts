/** The dashboard's script: fetches the numbers every ten seconds. */

import type { DashboardData } from '../history.ts'
import { choose, chosenQuery, showSites, startChoices } from './choices.ts'
import { byId, h, setContent, setText } from './dom.ts'
import { clock, duration, moment } from './format.ts'
import type { TimeFrame } from './line-plot.ts'
import { makePanels } from './panels.ts'
import { contactProblem, type Problem, problemsOf } from './problems.ts'
import { timeSpan } from './scale.ts'
import { showTiles } from './tiles.ts'

const POLL_MS = 10_000
const ANSWER_MS = 8000
const TICK_MS = 1000

const panels = makePanels(siteKey => {
  choose('site', siteKey)
  void poll()
})

let latest: DashboardData | undefined
let lastOkMs: number | undefined
let hasFailed = false
let requests = 0

byId('plots', HTMLElement).append(...panels.map(({ element }) => element))
setText(byId('host', HTMLElement), location.host)
startChoices(() => void poll())
document.addEventListener('visibilitychange', pollIfVisible)
setInterval(pollIfVisible, POLL_MS)
setInterval(showContact, TICK_MS)
void poll()

function pollIfVisible(): void {
  if (!document.hidden) void poll()
}

async function poll(): Promise<void> {
  const number = ++requests
  // A late answer must not replace a newer one.
  const isLate = () => number !== requests
  try {
    const response = await fetch(`dashboard/data.json?${chosenQuery()}`, {
      signal: AbortSignal.timeout(ANSWER_MS),
    })
    if (!response.ok) throw new Error(`status ${response.status}`)
    const data: DashboardData = await response.json()
    if (isLate()) return
    latest = data
    lastOkMs = Date.now()
    hasFailed = false
    show(data)
  } catch {
    if (!isLate()) hasFailed = true
  }
  showContact()
}

function show(data: DashboardData): void {
  const { range, nowMs, startedAtMs, times } = data
  const frame: TimeFrame = { times, outages: outagesOf(data), ...timeSpan(range, nowMs, startedAtMs) }
  showSites(data)
  for (const panel of panels) panel.update(data, frame)
  setText(byId('since', HTMLElement), moment(startedAtMs))
  document.body.dataset.loaded = 'true'
}

/** Joins steps that follow each other. */
function outagesOf({ times, seconds, store }: DashboardData): TimeFrame['outages'] {
  const outages: { fromMs: number; toMs: number }[] = []
  for (const [step, toMs] of times.entries()) {
    if (store.up[step] === 1) continue
    const previous = outages.at(-1)
    if (previous !== undefined && previous.toMs === times[step - 1]) previous.toMs = toMs
    else outages.push({ fromMs: toMs - seconds[step]! * 1000, toMs })
  }
  return outages
}

/** Shows how old the numbers are, and what depends on it. */
function showContact(): void {
  const now = Date.now()
  const contact = contactProblem(lastOkMs, hasFailed, now)
  if (lastOkMs !== undefined) {
    const age = duration((now - lastOkMs) / 1000)
    const stale = `Stale: last updated ${age} ago, at ${clock(lastOkMs)}`
    setText(byId('freshness', HTMLElement), contact === undefined ? `Updated ${age} ago` : stale)
  }
  document.body.classList.toggle('stale', contact !== undefined)
  if (latest !== undefined) showTiles(latest, contact === undefined)
  if (contact !== undefined) showProblems([contact])
  else showProblems(latest === undefined ? [] : problemsOf(latest))
}

const EMPTY = 'No requests yet. Numbers appear here within ten seconds of the first one.'

function showProblems(problems: readonly Problem[]): void {
  const rows = problems.map(({ level, text }) => h('p', { class: `problem ${level}` }, text))
  if (latest?.sites.length === 0 && latest.traffic.refusals.length === 0)
    rows.push(h('p', { class: 'problem' }, EMPTY))
  setContent(byId('problems', HTMLElement), rows)
  const [worst] = problems
  const mark = worst === undefined ? '' : worst.level === 'bad' ? '✕ ' : '! '
  document.title = `${mark}powgate dashboard`
}
