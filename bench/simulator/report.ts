/** The figures of scenarios as a table. */

import { left, type ReportTable, right, table } from '../report/report.ts'
import type { AttackFigures, Delays, Figures } from './figures.ts'
import type { Result } from './simulate.ts'

/** A scenario under a policy, at one speed of people's devices after another. */
export interface Row {
  readonly policy: string
  readonly results: readonly [Result, ...Result[]]
}

/** @param rows one line each */
export function scenarioTable(title: string, rows: readonly Row[]): ReportTable {
  return table<Row>(
    title,
    [
      [left('scenario'), ({ results: [first] }) => first.scenario.name],
      [left('policy'), ({ policy }) => policy],
      figure('p50, p95, p99 s', ({ all }) => delayText(all)),
      [
        right('x1/2, x2'),
        ({ results: [, ...others] }) => others.map(({ figures }) => secondsText(figures.all.p95)).join(', '),
      ],
      figure('added', ({ all }) => `${secondsText(all.added.p95)}, ${secondsText(all.added.p99)}`),
      figure('gone %', ({ all }) => percent(all.gone)),
      figure('held %', ({ all }) => percent(all.limited)),
      figure('bits', ({ meanBits, bitsMax }) => `${meanBits.toFixed(2)} (${bitsMax})`),
      figure('over', ({ overshootBits }) => overshootBits?.toFixed(2)),
      figure('accepted', ({ attacks }) => lastOf(attacks)?.acceptedPerMinute.toFixed(1)),
      figure('dollars', ({ attacks }) => costText(lastOf(attacks))),
      figure('work', ({ workRatio }) => workRatio?.toFixed(0)),
      figure('s/$', ({ secondsPerDollar }) => secondsPerDollar?.toPrecision(2)),
      figure('back s', ({ recoverySeconds }) => recoverySeconds?.toString()),
      figure(
        'others',
        ({ collateral }) => collateral && `${signed(collateral.bits)}, ${signed(collateral.score)}`,
      ),
    ],
    rows,
  )
}

/** A column of the first speed; empty where there is no such figure. */
function figure(title: string, textOf: (figures: Figures) => string | undefined) {
  return [right(title), ({ results: [first] }: Row) => textOf(first.figures) ?? ''] as const
}

const lastOf = (attacks: Figures['attacks']) => Object.values(attacks).at(-1)

function signed(change: number): string {
  const text = change.toFixed(2).replace(/^-(0\.00)$/, '$1')
  return change > 0 ? `+${text}` : text
}

function delayText({ p50, p95, p99 }: Delays): string {
  return [p50, p95, p99].map(secondsText).join(', ')
}

function secondsText(seconds: number | undefined): string {
  return seconds === undefined ? '-' : seconds.toFixed(2)
}

function percent(share: number): string {
  return share === 0 ? '0' : (100 * share).toPrecision(2)
}

function costText(attack: AttackFigures | undefined): string {
  if (attack === undefined) return ''
  const { cost, accepted } = attack
  if (accepted === 0) return 'none'
  return [cost.cpu, cost.gpu, cost.addresses, cost.bytes].map(dollars => dollars.toPrecision(2)).join(' + ')
}
