/** Tiles with the key numbers. */

import type { DashboardData } from '../history.ts'
import { h, setText } from './dom.ts'
import { duration, milliseconds, orDash, percent, rate } from './format.ts'
import type { Level } from './problems.ts'

const SYMBOLS: Readonly<Record<Level, string>> = { good: '✓', warn: '!', bad: '✕' }

class Tile {
  readonly element: HTMLElement
  readonly #symbol = h('span', { class: 'symbol', 'aria-hidden': 'true' })
  readonly #value = h('dd', { class: 'value' })
  readonly #note = h('dd', { class: 'note' })

  constructor(name: string) {
    this.element = h('div', { class: 'tile' }, h('dt', {}, name), this.#value, this.#note)
  }

  show(value: string, note: string, level?: Level): void {
    if (level !== undefined && !this.#symbol.isConnected) this.element.prepend(this.#symbol)
    if (level !== undefined) setText(this.#symbol, SYMBOLS[level])
    this.element.dataset.level = level ?? ''
    setText(this.#value, value)
    setText(this.#note, note)
    this.#note.hidden = note === ''
  }
}

const HEALTH = ['Service', 'Store', 'Workers', 'Hosts'] as const
const HOSTS_SHOWN = 8
const TRAFFIC = ['Challenges', 'Verifications', 'Redemptions', 'Passed', 'Refused', '/verify p99'] as const
type Name = (typeof HEALTH | typeof TRAFFIC)[number]

export class Tiles {
  readonly element: HTMLElement
  readonly #tiles = new Map<Name, Tile>()

  constructor() {
    const list = (names: readonly Name[]) => h('dl', {}, ...names.map(name => this.#add(name)))
    const health = [h('h2', {}, 'Health'), list(HEALTH)]
    this.element = h('div', {}, ...health, h('h2', {}, 'Last minute'), list(TRAFFIC))
  }

  #add(name: Name): HTMLElement {
    const tile = new Tile(name)
    this.#tiles.set(name, tile)
    return tile.element
  }

  #show(name: Name, value: string, note: string, level?: Level): void {
    this.#tiles.get(name)!.show(value, note, level)
  }

  update(data: DashboardData, hasContact: boolean): void {
    if (hasContact) this.#showHealth(data)
    else {
      this.#show('Service', 'No contact', 'state unknown', 'bad')
      for (const name of HEALTH.slice(1)) this.#show(name, 'Unknown', 'no contact', 'bad')
    }
    this.#showTraffic(data)
  }

  #showHealth({ service, lastMinute, nowMs, startedAtMs }: DashboardData): void {
    const { workers, workersRunning, workersWithStore, isReady, isHealthy, crashes } = service
    const uptime = `up ${duration((nowMs - startedAtMs) / 1000)}`
    if (!isReady) this.#show('Service', 'Not ready', uptime, 'bad')
    else if (isHealthy) this.#show('Service', 'Ready', uptime, 'good')
    else this.#show('Service', 'Degraded', uptime, 'warn')
    const call = lastMinute.storeP99 === null ? 'no calls' : `p99 ${milliseconds(lastMinute.storeP99)}`
    if (workersWithStore === workersRunning && workersRunning > 0) this.#show('Store', 'Up', call, 'good')
    else if (workersWithStore > 0)
      this.#show('Store', 'Partly', `for ${workersWithStore} of ${workersRunning} workers`, 'bad')
    else if (isReady) this.#show('Store', 'Partly', 'a part does not answer', 'bad')
    else this.#show('Store', 'Away', 'does not answer', 'bad')
    const replaced = crashes === 0 ? 'none crashed' : `${crashes} crashed, replaced`
    const level = workersRunning === 0 ? 'bad' : workersRunning < workers ? 'warn' : 'good'
    this.#show('Workers', `${workersRunning} of ${workers}`, replaced, level)
    const hosts = service.hosts.slice(0, HOSTS_SHOWN).map(({ name, version, workers, startedAt }) => {
      return `${name}: ${version}, ${workers} workers, up ${duration((nowMs - startedAt) / 1000)}`
    })
    const agree = service.differences.length === 0 ? 'good' : 'bad'
    this.#tiles.get('Hosts')!.element.hidden = hosts.length === 0
    this.#show('Hosts', String(service.hosts.length), hosts.join('\n'), agree)
  }

  #showTraffic({ lastMinute }: DashboardData): void {
    const { seconds, challenges, passed, failed, redeemed, refused, redemptionsRefused, verifyP99 } =
      lastMinute
    const perSecond = (count: number) => (seconds > 0 ? `${rate(count / seconds)}/s` : '–')
    const verified = passed + failed
    const all = challenges + verified + redeemed + refused
    this.#show('Challenges', perSecond(challenges), '')
    this.#show('Verifications', perSecond(verified), '')
    const asked = redeemed + redemptionsRefused
    this.#show('Redemptions', perSecond(redeemed), asked > 0 ? `${percent(redeemed / asked)} succeed` : '')
    this.#show('Passed', verified > 0 ? percent(passed / verified) : '–', '')
    this.#show('Refused', all > 0 ? percent(refused / all) : '–', all > 0 ? perSecond(refused) : '')
    this.#show('/verify p99', orDash(verifyP99, milliseconds), '')
  }
}
