/** Panels about the requests of visitors and backends, over time. */

import { BarPlot } from './bar-plot.ts'
import type { Cursor } from './cursor.ts'
import { exact, rate, short } from './format.ts'
import { Funnel } from './funnel.ts'
import { LinePlot, type LinePlotSpec } from './line-plot.ts'
import { type PagePart, Panel } from './panel.ts'
import { stepTable } from './step-table.ts'

export function funnelPanel(): PagePart {
  const funnel = new Funnel()
  const panel = new Panel(
    { title: 'From challenge to redeemed token', about: 'whole range', isWide: true },
    [funnel.element],
    false,
  )
  return { element: panel.element, update: ({ traffic }) => funnel.update(traffic) }
}

const PER_SECOND: Pick<LinePlotSpec, 'text' | 'tick' | 'axisMax'> = {
  text: value => `${rate(value)}/s`,
  tick: short,
  axisMax: 1,
}

export function trafficPanel(cursor: Cursor): PagePart {
  const curves = [
    { name: 'challenges', look: 'c0' },
    { name: 'verified', look: 'c1' },
    { name: 'redeemed', look: 'c2' },
    { name: 'refused', look: 'c3' },
  ]
  const plot = new LinePlot({ label: 'Requests', curves, ...PER_SECOND }, cursor)
  const panel = new Panel({ title: 'Requests', about: 'per second', at: plot.at }, [plot.element])
  return {
    element: panel.element,
    update({ traffic, seconds, site, times }, frame) {
      const { challenges, passed, failed, redeemed, refused } = traffic
      const verified = passed.map((count, index) => count + failed[index]!)
      const counts = [challenges, verified, redeemed, refused]
      plot.update(
        frame,
        counts.map(column => perSecond(column, seconds)),
      )
      panel.update(site !== null, () =>
        stepTable(
          times,
          curves.map(({ name }) => name),
          counts,
          exact,
        ),
      )
    },
  }
}

export function verificationPanel(cursor: Cursor): PagePart {
  const curves = [
    { name: 'passed', look: 'c0' },
    { name: 'failed', look: 'c1' },
  ]
  const spec = { label: 'Verifications', curves, ...PER_SECOND, isStacked: true }
  const plot = new LinePlot(spec, cursor)
  const panel = new Panel({ title: 'Verifications', about: 'per second, one upon the other', at: plot.at }, [
    plot.element,
  ])
  return {
    element: panel.element,
    update({ traffic: { passed, failed }, seconds, site, times }, frame) {
      plot.update(frame, [perSecond(passed, seconds), perSecond(failed, seconds)])
      panel.update(site !== null, () => stepTable(times, ['passed', 'failed'], [passed, failed], exact))
    },
  }
}

const SCORE_LABELS = ['0', '0.1', '0.2', '0.3', '0.4', '0.5', '0.6', '0.7', '0.8', '0.9', '1']

export function scorePanel(): PagePart {
  const plot = new BarPlot('Verifications by score', SCORE_LABELS)
  const about = 'share of scored verifications; 0.5 stands for 0.50 to 0.59'
  const panel = new Panel({ title: 'Scores', about }, [plot.element])
  return {
    element: panel.element,
    update({ traffic: { scores }, site }) {
      plot.update(scores)
      const rows = scores.map((count, index) => [SCORE_LABELS[index]!, exact(count)])
      panel.update(site !== null, () => ({ head: ['Score from', 'Verifications'], rows }))
    },
  }
}

const BITS_MIN = 16

export function difficultyPanel(cursor: Cursor): PagePart {
  const curves = [
    { name: 'mean', look: 'c0' },
    { name: 'highest', look: 'c1' },
  ]
  const text = (bits: number) => `${bits.toFixed(1).replace('.0', '')} bits`
  const axis = { axisMin: BITS_MIN, axisMax: 20, isWhole: true }
  const plot = new LinePlot({ label: 'Difficulty', curves, text, tick: String, ...axis }, cursor)
  const about = 'bits of issued challenges; each one doubles the work'
  const panel = new Panel({ title: 'Difficulty', about, at: plot.at }, [plot.element])
  return {
    element: panel.element,
    update({ traffic: { difficulty }, site, times }, frame) {
      const values = [difficulty.mean, difficulty.max]
      plot.update(frame, values)
      panel.update(site !== null, () => stepTable(times, ['mean', 'highest'], values, text))
    },
  }
}

function perSecond(counts: readonly number[], seconds: readonly number[]): number[] {
  return counts.map((count, index) => (seconds[index]! > 0 ? count / seconds[index]! : 0))
}
