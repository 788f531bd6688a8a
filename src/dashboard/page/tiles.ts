/** Tiles with the key numbers: the service's health, and the traffic of the last minute. */

import type { DashboardData } from '../history.ts'
import { byId, h, setContent } from './dom.ts'
import { duration, milliseconds, orDash, percent, rate } from './format.ts'
import type { Level } from './problems.ts'

const SYMBOLS: Readonly<Record<Level, string>> = { good: '✓', warn: '!', bad: '✕' }

export function showTiles(data: DashboardData): void {
  setContent(byId('health'), healthOf(data))
  setContent(byId('last-minute'), lastMinuteOf(data))
}

/** Called when the service does not answer: its last state may be wrong by now. */
export function showUnknownHealth(): void {
  const tiles = ['Service', 'Store', 'Workers'].map(name => tile(name, 'Unknown', 'no contact', 'bad'))
  setContent(byId('health'), tiles)
}

function tile(name: string, value: string, note = '', level?: Level): HTMLElement {
  const symbol = level && h('span', { class: 'symbol', 'aria-hidden': 'true' }, SYMBOLS[level])
  const notes = note === '' ? [] : [h('dd', { class: 'note' }, note)]
  const texts = [h('dt', {}, name), h('dd', { class: 'value' }, value), ...notes]
  return h('div', { class: `tile ${level ?? ''}` }, ...(symbol ? [symbol] : []), ...texts)
}

function healthOf({ service, lastMinute, nowMs, startedAtMs }: DashboardData): HTMLElement[] {
  const { workers, workersRunning, isReady, isHealthy, workerCrashes } = service
  const upSince = (sinceMs: number) => `up ${duration((nowMs - sinceMs) / 1000)}`
  const whenReady = isHealthy ? (['Ready', 'good'] as const) : (['Degraded', 'warn'] as const)
  const [state, stateLevel] = isReady ? whenReady : (['Not ready', 'bad'] as const)
  const replaced = workerCrashes === 0 ? 'none crashed' : `${workerCrashes} crashed, replaced`
  const level = workersRunning === 0 ? 'bad' : workersRunning < workers ? 'warn' : 'good'
  const tiles = [
    tile('Service', state, upSince(startedAtMs), stateLevel),
    storeTile(service, lastMinute.storeP99Ms),
    tile('Workers', `${workersRunning} of ${workers}`, replaced, level),
  ]
  if (service.hosts.length > 0) {
    const hosts = service.hosts.map(({ name, version, workers, startedAt }) => {
      return `${name}: ${version}, ${workers} workers, ${upSince(startedAt)}`
    })
    const agree = service.differences.length === 0 ? 'good' : 'bad'
    tiles.push(tile('Hosts', String(service.hosts.length), hosts.join('\n'), agree))
  }
  return tiles
}

function storeTile(
  { workersWithStore, workersRunning, isReady, isStoreEmbedded, storeCauses }: DashboardData['service'],
  p99Ms: number | null,
): HTMLElement {
  if (workersWithStore === workersRunning && workersRunning > 0)
    return tile('Store', 'Up', p99Ms === null ? 'no calls' : `p99 ${milliseconds(p99Ms)}`, 'good')
  if (workersWithStore > 0)
    return tile('Store', 'Partly', `for ${workersWithStore} of ${workersRunning} workers`, 'bad')
  // A worker is ready with half of a Cluster's parts, but has the store only with all. A single Redis has no parts.
  if (isReady && !isStoreEmbedded) return tile('Store', 'Partly', 'a part does not answer', 'bad')
  if (workersRunning === 0 && storeCauses.length === 0) return tile('Store', '–', 'no worker asks it')
  return tile('Store', 'Away', 'does not answer', 'bad')
}

function lastMinuteOf({ lastMinute }: DashboardData): HTMLElement[] {
  const { seconds, challenges, passed, failed, redeemed, refused, redemptionsRefused, verifyP99Ms } =
    lastMinute
  const perSecond = (count: number) => (seconds > 0 ? `${rate(count / seconds)}/s` : '–')
  const share = (count: number, of: number) => (of > 0 ? percent(count / of) : '–')
  const verified = passed + failed
  const asked = redeemed + redemptionsRefused
  const all = challenges + verified + redeemed + refused
  return [
    tile('Redemptions', perSecond(redeemed), asked > 0 ? `${share(redeemed, asked)} succeed` : ''),
    tile('Passed', share(passed, verified)),
    tile('Refused', share(refused, all), all > 0 ? perSecond(refused) : ''),
    tile('/verify p99', orDash(verifyP99Ms, milliseconds)),
  ]
}
