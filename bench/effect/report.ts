/** The figures of scenarios as a table, and as a page with time lines. */

import type { Report, ReportLines } from '../support/report.ts'
import type { Column } from '../support/table.ts'
import type { AttackFigures, Delays } from './figures.ts'
import { BIN_MS, type Bin, quantileOf } from './measure.ts'
import type { Result } from './simulate.ts'

export const COLUMNS: readonly Column[] = [
  { title: 'scenario', align: 'left' },
  ...['p50, p95, p99 s', 'gone %', 'held %', 'bits', 'accepted', 'dollars', 'work', 's/$', 'back s'].map(
    title => ({ title, align: 'right' }) as const,
  ),
]

export function rowOf({ scenario, figures }: Result): string[] {
  const { all, attacks, meanBits, bitsMax, workRatio, secondsPerDollar, recoverySeconds } = figures
  const last = Object.values(attacks).at(-1)
  return [
    scenario.name,
    delayText(all),
    percent(all.gone),
    percent(all.limited),
    `${meanBits.toFixed(2)} (${bitsMax})`,
    last === undefined ? '' : last.acceptedPerMinute.toFixed(1),
    last === undefined ? '' : costText(last),
    workRatio === undefined ? '' : workRatio.toFixed(0),
    secondsPerDollar === undefined ? '' : secondsPerDollar.toPrecision(2),
    recoverySeconds === undefined ? '' : String(recoverySeconds),
  ]
}

function delayText({ p50, p95, p99 }: Delays): string {
  return [p50, p95, p99].map(seconds => (seconds === undefined ? '-' : seconds.toFixed(2))).join(', ')
}

function percent(share: number): string {
  return share === 0 ? '0' : (100 * share).toPrecision(2)
}

function costText({ cost, accepted }: AttackFigures): string {
  if (accepted === 0) return 'none'
  return [cost.cpu, cost.gpu, cost.addresses, cost.bytes].map(dollars => dollars.toPrecision(2)).join(' + ')
}

const LINES: readonly (readonly [title: string, unit: string, of: (bin: Bin) => number | undefined])[] = [
  ['Difficulty of people', 'bits', bin => bin.peopleChallenges && bin.peopleBits / bin.peopleChallenges],
  ['Delay of people, p95', 'seconds', bin => delayOf(bin)],
  ['Tokens of attackers', 'a minute', bin => (bin.accepted * 60_000) / BIN_MS],
  ['Refusals by limits, of people', 'a minute', bin => (bin.peopleLimited * 60_000) / BIN_MS],
]

function delayOf({ delaysMs }: Bin): number | undefined {
  return delaysMs.length === 0
    ? undefined
    : quantileOf(
        delaysMs.toSorted((a, b) => a - b),
        0.95,
      ) / 1000
}

export function reportOf(
  results: readonly Result[],
  { seed, speed }: { seed: number; speed: number },
): Report {
  return {
    title: 'What the policy costs attackers and people',
    intro: `Simulated with seed ${seed}; people's devices ${speed} times as fast as populations.json says.`,
    parts: results.flatMap(result => [
      { kind: 'text' as const, text: `${result.scenario.name}: ${result.scenario.about}` },
      { kind: 'table' as const, title: result.scenario.name, columns: COLUMNS, rows: [rowOf(result)] },
      ...LINES.map(line => timeLine(result, line)),
    ]),
  }
}

function timeLine({ scenario, measure }: Result, [title, unit, of]: (typeof LINES)[number]): ReportLines {
  const points = measure.bins.flatMap((bin, index) => {
    const y = of(bin)
    return y === undefined ? [] : [{ x: (index * BIN_MS) / 60_000, y }]
  })
  return {
    kind: 'lines',
    title: `${scenario.name}: ${title}`,
    xTitle: 'minutes',
    yTitle: unit,
    series: [{ name: title, points }],
  }
}
