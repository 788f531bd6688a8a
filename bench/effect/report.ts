/** The figures of scenarios as a table, and as a page with time lines. */

import type { Report, ReportLines } from '../report/report.ts'
import { type Column, left, right } from '../report/report.ts'
import type { AttackFigures, Delays } from './figures.ts'
import { BIN_MS, type Bin, quantileOf } from './figures.ts'
import type { Result } from './simulate.ts'

/** A scenario under a policy, at one speed of people's devices after another. */
export interface Row {
  readonly policy: string
  readonly results: readonly Result[]
}

export const COLUMNS: readonly Column[] = [
  left('scenario'),
  left('policy'),
  ...['p50, p95, p99 s', 'x1/2, x2', 'added', 'gone %', 'held %', 'bits', 'over', 'accepted', 'dollars'].map(
    right,
  ),
  ...['work', 's/$', 'back s', 'others'].map(right),
]

export function cellsOf({ policy, results }: Row): string[] {
  const [{ scenario, figures }, ...otherSpeeds] = results as [Result, ...Result[]]
  const { all, attacks, meanBits, bitsMax, workRatio, secondsPerDollar, recoverySeconds } = figures
  const { overshootBits, collateral } = figures
  const last = Object.values(attacks).at(-1)
  return [
    scenario.name,
    policy,
    delayText(all),
    otherSpeeds.map(result => secondsText(result.figures.all.p95)).join(', '),
    `${secondsText(all.added.p95)}, ${secondsText(all.added.p99)}`,
    percent(all.gone),
    percent(all.limited),
    `${meanBits.toFixed(2)} (${bitsMax})`,
    overshootBits === undefined ? '' : overshootBits.toFixed(2),
    last === undefined ? '' : last.acceptedPerMinute.toFixed(1),
    last === undefined ? '' : costText(last),
    workRatio === undefined ? '' : workRatio.toFixed(0),
    secondsPerDollar === undefined ? '' : secondsPerDollar.toPrecision(2),
    recoverySeconds === undefined ? '' : String(recoverySeconds),
    collateral === undefined ? '' : `${signed(collateral.bits)}, ${signed(collateral.score)}`,
  ]
}

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

function costText({ cost, accepted }: AttackFigures): string {
  if (accepted === 0) return 'none'
  return [cost.cpu, cost.gpu, cost.addresses, cost.bytes].map(dollars => dollars.toPrecision(2)).join(' + ')
}

const DEVICE_COLUMNS = [
  left('device'),
  ...['visits', 'p50, p95, p99 s', 'added p95, p99 s', 'gone %'].map(right),
]

function devicesOf({ figures }: Result): string[][] {
  return Object.entries(figures.byDevice).map(([device, delays]) => [
    device,
    String(delays.visits),
    delayText(delays),
    `${secondsText(delays.added.p95)}, ${secondsText(delays.added.p99)}`,
    percent(delays.gone),
  ])
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
      const result = row.results[0]!
      const name = `${result.scenario.name}, ${row.policy}`
      return [
        { kind: 'text' as const, text: `${name}: ${result.scenario.about}` },
        { kind: 'table' as const, title: name, columns: COLUMNS, rows: [cellsOf(row)] },
        {
          kind: 'table' as const,
          title: `${name}: devices`,
          columns: DEVICE_COLUMNS,
          rows: devicesOf(result),
        },
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
