/** A funnel from challenges to redeemed tokens: the number of each stage in the whole range. */

import type { Traffic } from '../../metrics/history-view.ts'
import { h, setText, svg } from './dom.ts'
import { exact, percent } from './format.ts'
import { sum } from './sum.ts'

const STAGES = [
  ['Challenges', 'issued'],
  ['Solutions', 'of challenges'],
  ['Passed', 'of solutions'],
  ['Redeemed', 'of passed'],
] as const

export class Funnel {
  readonly element: HTMLElement
  readonly #stages = STAGES.map(([name]) => {
    const count = h('b')
    const share = h('span', { class: 'share' })
    const bar = svg('rect', { class: 'column', height: 8, rx: 2 })
    const track = svg('svg', { class: 'track', height: 8, 'aria-hidden': 'true' }, bar)
    const label = h('span', { class: 'stage' }, `${name} `, share)
    return { count, share, bar, element: h('li', {}, label, count, track) }
  })

  constructor() {
    this.element = h('ol', { class: 'funnel' }, ...this.#stages.map(({ element }) => element))
  }

  update({ challenges, passed, failed, redeemed }: Traffic): void {
    const solved = sum(passed) + sum(failed)
    const counts = [sum(challenges), solved, sum(passed), sum(redeemed)]
    const most = Math.max(1, ...counts)
    for (const [index, { count, share, bar }] of this.#stages.entries()) {
      const value = counts[index]!
      const before = counts[index - 1]
      // A stage may exceed the one before: its challenges may have been issued before the range.
      const isShare = before !== undefined && before > 0 && value <= before
      setText(count, exact(value))
      setText(
        share,
        before === undefined
          ? STAGES[0][1]
          : isShare
            ? `${percent(value / before)} ${STAGES[index]![1]}`
            : '',
      )
      bar.setAttribute('width', `${(100 * value) / most}%`)
    }
  }
}
