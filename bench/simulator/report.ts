/** The figures of scenarios as a table, whose columns main.ts explains. */

import { type Cell, left, right } from '../report/report.ts'
import type { AttackFigures, Figures } from './figures.ts'
import type { Result } from './simulate.ts'

/** A scenario at several speeds of people's devices: the first counts, of the others only the p95 is shown. */
type Row = readonly Result[]

/** The columns of `--beside`, which gives each scenario a base, and each puzzle a row. */
export const BESIDE_CELLS: readonly Cell<Result>[] = [
  [left('scenario'), ({ scenario }) => scenario.name],
  [left('puzzle'), ({ scenario: { base }, measure }) => `${measure.puzzle} ${base!.toFixed(2)}`],
  [right('p50, p95, p99 s'), ({ figures }) => quantilesText(figures.all)],
  [right('low phones'), ({ figures }) => quantilesText(figures.byDevice['low phone'])],
  [right('gone %'), ({ figures }) => percent(figures.all.gone)],
  [right('accepted'), ({ figures }) => lastOf(figures.attacks)?.acceptedPerMinute.toFixed(1) ?? ''],
  [right('dollars'), ({ figures }) => costText(lastOf(figures.attacks))],
  [right('work'), ({ figures }) => figures.workRatio?.toFixed(0) ?? ''],
]

export const CELLS: readonly Cell<Row>[] = [
  [left('scenario'), ([first]) => first!.scenario.name],
  figure('p50, p95, p99 s', ({ all }) => quantilesText(all)),
  [right('x1/2, x2'), ([, ...others]) => secondsText(...others.map(({ figures }) => figures.all.p95))],
  figure('gone %', ({ all }) => percent(all.gone)),
  figure('held %', ({ all }) => percent(all.limited)),
  figure('bits', ({ meanBits, bitsMax }) => `${meanBits.toFixed(2)} (${bitsMax})`),
  figure('accepted', ({ attacks }) => lastOf(attacks)?.acceptedPerMinute.toFixed(1)),
  figure('dollars', ({ attacks }) => costText(lastOf(attacks))),
  figure('work', ({ workRatio }) => workRatio?.toFixed(0)),
  figure('back s', ({ recoverySeconds }) => recoverySeconds?.toString()),
  figure(
    'others', // what the attack adds to people's bits and score
    ({ collateral }) => collateral && `${signed(collateral.bits)}, ${signed(collateral.score)}`,
  ),
]

/** A column of the first speed; empty where there is no such figure. */
function figure(title: string, textOf: (figures: Figures) => string | undefined): Cell<Row> {
  return [right(title), ([first]) => textOf(first!.figures) ?? '']
}

/** The last attack is told; where there are several, the earlier ones only prepare or precede it. */
function lastOf(attacks: Figures['attacks']): AttackFigures | undefined {
  return Object.values(attacks).at(-1)
}

function signed(change: number): string {
  const text = change.toFixed(2).replace(/^-(0\.00)$/, '$1')
  return change > 0 ? `+${text}` : text
}

function quantilesText(delays: Figures['all'] | undefined): string {
  return secondsText(delays?.p50, delays?.p95, delays?.p99)
}

function secondsText(...all: (number | undefined)[]): string {
  return all.map(seconds => seconds?.toFixed(2) ?? '-').join(', ')
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
