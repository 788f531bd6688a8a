/** The figures of scenarios as a table, and as a page with time lines. */

import { left, type Report, type ReportLines, type ReportTable, right, table } from '../report/report.ts'
import { type AttackFigures, BIN_MS, type Bin, type Delays, type Figures, quantileOf } from './figures.ts'
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

function deviceTable(title: string, { figures }: Result): ReportTable {
  return table(
    title,
    [
      [left('device'), ([device]) => device],
      [right('visits'), ([, { visits }]) => String(visits)],
      [right('p50, p95, p99 s'), ([, delays]) => delayText(delays)],
      [right('added p95, p99 s'), ([, { added }]) => `${secondsText(added.p95)}, ${secondsText(added.p99)}`],
      [right('gone %'), ([, { gone }]) => percent(gone)],
    ],
    Object.entries(figures.byDevice),
  )
}

const LINES: readonly (readonly [title: string, unit: string, of: (bin: Bin) => number | undefined])[] = [
  [
    'Difficulty of people',
    'bits',
    bin => (bin.peopleChallenges === 0 ? undefined : bin.peopleBits / bin.peopleChallenges),
  ],
  ['Delay of people, p95', 'seconds', bin => delayOf(bin)],
  ['Tokens of attackers', 'a minute', bin => (bin.accepted * 60_000) / BIN_MS],
  ['Refusals by limits, of people', 'a minute', bin => (bin.peopleLimited * 60_000) / BIN_MS],
  ['Refusals by limits, of attackers', 'a minute', bin => (bin.attackRefused * 60_000) / BIN_MS],
]

function delayOf({ delaysMs }: Bin): number | undefined {
  return delaysMs.length === 0
    ? undefined
    : quantileOf(
        delaysMs.toSorted((a, b) => a - b),
        0.95,
      ) / 1000
}

/** @param speed of people's devices, as a multiple of populations.json */
export function reportOf(rows: readonly Row[], seed: number, speed: number): Report {
  return {
    title: 'What the policy costs attackers and people',
    intro: `Simulated with seed ${seed}; people's devices ${speed} times as fast as populations.json says.`,
    parts: rows.flatMap(row => {
      const [result] = row.results
      const name = `${result.scenario.name}, ${row.policy}`
      return [
        { kind: 'text' as const, text: `${name}: ${result.scenario.about}` },
        scenarioTable(name, [row]),
        deviceTable(`${name}: devices`, result),
        ...LINES.map(line => timeLine(name, result, line)),
      ]
    }),
  }
}

function timeLine(name: string, { measure }: Result, [title, unit, of]: (typeof LINES)[number]): ReportLines {
  const points = measure.bins.flatMap((bin, index) => {
    const y = of(bin)
    return y === undefined ? [] : [{ x: (index * BIN_MS) / 60_000, y }]
  })
  return {
    kind: 'lines',
    title: `${name}: ${title}`,
    xTitle: 'minutes',
    yTitle: unit,
    series: [{ name: title, points }],
  }
}
