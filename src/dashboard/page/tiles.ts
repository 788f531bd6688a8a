/** The column of tiles with the most important numbers. */

import type { DashboardData } from '../../metrics/history-view.ts'
import { h, setText } from './dom.ts'
import { duration, milliseconds, percent, rate } from './format.ts'
import type { Level } from './problems.ts'

const MARKS: Readonly<Record<Level, string>> = { good: '✓', warn: '!', bad: '✕' }

class Tile {
  readonly element: HTMLElement
  readonly #mark = h('span', { class: 'mark', 'aria-hidden': 'true' })
  readonly #value = h('dd', { class: 'value' })
  readonly #note = h('dd', { class: 'note' })

  constructor(name: string) {
    this.element = h('div', { class: 'tile' }, h('dt', {}, name), this.#value, this.#note)
  }

  show(value: string, note: string, level?: Level): void {
    if (level !== undefined && !this.#mark.isConnected) this.element.prepend(this.#mark)
    if (level !== undefined) setText(this.#mark, MARKS[level])
    this.element.dataset.level = level ?? ''
    setText(this.#value, value)
    setText(this.#note, note)
    this.#note.hidden = note === ''
  }
}

/** Never throws; a missing number is shown as a dash. */
export class Tiles {
  readonly element: HTMLElement
  readonly #service = new Tile('Service')
  readonly #store = new Tile('Store')
  readonly #workers = new Tile('Workers')
  readonly #challenges = new Tile('Challenges')
  readonly #verifications = new Tile('Verifications')
  readonly #redemptions = new Tile('Redemptions')
  readonly #passed = new Tile('Passed')
  readonly #refused = new Tile('Refused')
  readonly #latency = new Tile('/verify p99')

  constructor() {
    const list = (...tiles: Tile[]) => h('dl', {}, ...tiles.map(({ element }) => element))
    this.element = h(
      'div',
      {},
      h('h2', {}, 'Health'),
      list(this.#service, this.#store, this.#workers),
      h('h2', {}, 'Last minute'),
      list(
        this.#challenges,
        this.#verifications,
        this.#redemptions,
        this.#passed,
        this.#refused,
        this.#latency,
      ),
    )
  }

  update(data: DashboardData, hasContact: boolean): void {
    this.#showHealth(data, hasContact)
    this.#showTraffic(data)
  }

  #showHealth({ service, lastMinute, nowMs, startedAtMs }: DashboardData, hasContact: boolean): void {
    const { workers, workersRunning, workersWithStore, isReady, isHealthy, crashes } = service
    const uptime = `up ${duration((nowMs - startedAtMs) / 1000)}`
    if (!hasContact) this.#service.show('No contact', 'unknown how it is', 'bad')
    else if (!isReady) this.#service.show('Not ready', uptime, 'bad')
    else if (isHealthy) this.#service.show('Ready', uptime, 'good')
    else this.#service.show('Degraded', uptime, 'warn')
    const call = lastMinute.storeP99 === null ? 'no calls' : `p99 ${milliseconds(lastMinute.storeP99)}`
    if (!hasContact) this.#store.show('Unknown', 'no contact', 'bad')
    else if (workersWithStore === workersRunning && workersRunning > 0) this.#store.show('Up', call, 'good')
    else if (workersWithStore === 0) this.#store.show('Away', 'does not answer', 'bad')
    else this.#store.show('Partly', `for ${workersWithStore} of ${workersRunning} workers`, 'bad')
    const replaced = crashes === 0 ? 'none crashed' : `${crashes} crashed, replaced`
    if (!hasContact) this.#workers.show('Unknown', 'no contact', 'bad')
    else {
      const level = workersRunning === 0 ? 'bad' : workersRunning < workers ? 'warn' : 'good'
      this.#workers.show(`${workersRunning} of ${workers}`, replaced, level)
    }
  }

  #showTraffic({ lastMinute }: DashboardData): void {
    const { seconds, challenges, passed, failed, redeemed, refused, redemptionsRefused, p99 } = lastMinute
    const perSecond = (count: number) => (seconds > 0 ? `${rate(count / seconds)}/s` : '–')
    const verified = passed + failed
    const all = challenges + verified + redeemed + refused
    this.#challenges.show(perSecond(challenges), '')
    this.#verifications.show(perSecond(verified), '')
    const asked = redemptionsRefused === null ? 0 : redeemed + redemptionsRefused
    this.#redemptions.show(perSecond(redeemed), asked > 0 ? `${percent(redeemed / asked)} succeed` : '')
    this.#passed.show(verified > 0 ? percent(passed / verified) : '–', '')
    this.#refused.show(all > 0 ? percent(refused / all) : '–', all > 0 ? perSecond(refused) : '')
    this.#latency.show(p99.verify === null ? '–' : milliseconds(p99.verify), '')
  }
}
