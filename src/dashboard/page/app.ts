/** The dashboard's script: fetches the numbers every ten seconds, and shows them. */

import type { DashboardData } from '../history.ts'
import { choose, chosenQuery, showSites, startChoices } from './choices.ts'
import { byId, h, setContent, setText } from './dom.ts'
import { clockSeconds, moment } from './format.ts'
import { makePanels } from './panels.ts'
import { type Problem, problemsOf } from './problems.ts'
import { timeSpan } from './scale.ts'
import { showTiles, showUnknownHealth } from './tiles.ts'

const POLL_MS = 10_000
const ANSWER_MS = 8000

const panels = makePanels(siteKey => {
  choose('site', siteKey)
  void poll()
})

let latestPoll = 0

byId('plots').append(...panels.map(({ element }) => element))
setText(byId('host'), location.host)
startChoices(() => void poll())
document.addEventListener('visibilitychange', pollIfVisible)
setInterval(pollIfVisible, POLL_MS)
void poll()

function pollIfVisible(): void {
  if (!document.hidden) void poll()
}

async function poll(): Promise<void> {
  const number = ++latestPoll
  const data = await fetchData().catch(() => undefined)
  // A late answer must not replace a newer one.
  if (number !== latestPoll) return
  document.body.classList.toggle('stale', data === undefined)
  if (data === undefined) showNoContact()
  else show(data)
}

async function fetchData(): Promise<DashboardData> {
  const signal = AbortSignal.timeout(ANSWER_MS)
  const response = await fetch(`dashboard/data.json?${chosenQuery()}`, { signal })
  if (!response.ok) throw new Error(`status ${response.status}`)
  return response.json()
}

function showNoContact(): void {
  const text = 'No contact: the admin port does not answer. What you see is from the last update.'
  showProblems([{ level: 'bad', text }])
  showUnknownHealth()
}

const NO_REQUESTS = 'No requests in this time. Numbers appear here within ten seconds of the first one.'

function show(data: DashboardData): void {
  const { range, nowMs, startedAtMs, times, sites, traffic } = data
  const isEmpty = sites.length === 0 && traffic.refusals.length === 0
  showSites(data)
  showProblems(problemsOf(data), isEmpty ? [h('p', { class: 'problem' }, NO_REQUESTS)] : [])
  showTiles(data)
  const frame = { times, ...timeSpan(range, nowMs, startedAtMs) }
  for (const panel of panels) panel.update(data, frame)
  setText(byId('freshness'), `Updated at ${clockSeconds(Date.now())}`)
  setText(byId('since'), moment(startedAtMs))
  document.body.dataset.loaded = 'true'
}

function showProblems(problems: readonly Problem[], more: readonly HTMLElement[] = []): void {
  const rows = problems.map(({ level, text }) => h('p', { class: `problem ${level}` }, text))
  setContent(byId('problems'), [...rows, ...more])
}
