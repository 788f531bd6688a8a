/** The capacity page: as a report, and as Markdown for docs/measurements.md. Assumptions come first. */

import type { Spread } from '../../test/harness/measure.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { left, type Report, type ReportTable, right, table } from '../report/report.ts'
import {
  type Assumptions,
  type Capacity,
  DEFAULT_DIFFICULTY,
  type Defence,
  type Measurements,
  type Plan,
  REMEMBERED_SECONDS,
} from './model.ts'

export interface Surroundings {
  readonly cpu: string
  readonly node: string
  /** Of the day on which it was computed: 2026-01-31. */
  readonly date: string
  /** What each figure comes from, a line each. */
  readonly sources: readonly string[]
}

export interface CapacityPage {
  readonly surroundings: Surroundings
  readonly assumptions: Assumptions
  readonly measurements: Measurements
  readonly capacity: Capacity
}

export const START_MARKER = '<!-- capacity: computed by npm run bench:capacity -->'
export const END_MARKER = '<!-- /capacity -->'

export function markdownOf(page: CapacityPage): string {
  const list = assumptionsOf(page).map(line => `- ${line}`)
  const tables = tablesOf(page).map(({ title, columns, rows }) => {
    const rule = columns.map(({ align }) => (align === 'left' ? '---' : '---:'))
    const lines = [columns.map(column => column.title), rule, ...rows].map(
      cells => `| ${cells.join(' | ')} |`,
    )
    return `${title}:\n\n${lines.join('\n')}`
  })
  return [['Assumed and measured:', '', ...list].join('\n'), ...tables].join('\n\n')
}

/** @returns undefined if the text has not both markers, in order and once each */
export function withPage(text: string, markdown: string): string | undefined {
  const [before, rest, ...more] = text.split(START_MARKER)
  const [old, after, ...evenMore] = rest?.split(END_MARKER) ?? []
  if (old === undefined || after === undefined || more.length + evenMore.length > 0) return undefined
  return `${before}${START_MARKER}\n\n${markdown}\n\n${END_MARKER}${after}`
}

export function reportOf(page: CapacityPage): Report {
  return {
    title: 'powgate: capacity',
    intro: 'Computed from measured costs; what is assumed besides is said first.',
    parts: [{ kind: 'text', text: assumptionsOf(page).join('\n\n') }, ...tablesOf(page)],
  }
}

const ATTACKER_NAMES = { browser: 'browser, WASM SIMD', native: 'native, AVX-512' } as const
const STORE_NAMES: Readonly<Record<StoreKind, string>> = { embedded: 'embedded store', redis: 'Redis' }

function assumptionsOf({ surroundings, assumptions, measurements, capacity }: CapacityPage): string[] {
  const { cpu, node, date, sources } = surroundings
  const busy = `${(assumptions.busyMax * 100).toFixed(0)} %`
  const lines = [
    'A visitor makes one challenge, one verification and one redemption. Connections are kept alive and without TLS, as behind a load balancer.',
    `One worker per core. Cores of workers and of Redis are planned to be busy ${busy} of the time; a Redis primary is one core. The cost of a request is taken to be the same on any number of cores. Not in the figures: on a Cluster a redemption can take two calls instead of one, and batches are smaller.`,
    `A core costs ${number(assumptions.pricePerHour)} an hour, in any currency.`,
    `Computed ${date} on ${cpu}, Node.js ${node}: medians, with the range as if all were at their best or worst at once. ${sources.join('. ')}.`,
    ...attackerLines(measurements, assumptions),
  ]
  const { store, cpuSeconds } = capacity.defender
  lines.push(
    `Our CPU time for a visitor is ${number(cpuSeconds * 1e6)} us, of workers and Redis together (${STORE_NAMES[store]}).`,
  )
  if (measurements.verificationUs !== undefined) {
    lines.push(
      `Of that, reading, checking and scoring a solution and making its token take ${spread(measurements.verificationUs)} us.`,
    )
  }
  const bytes = measurements.bytesPerActiveAddress
  lines.push(
    bytes === undefined
      ? 'Redis memory was not measured.'
      : `Redis memory: ${number(bytes.typical)} bytes of a typical address, ${number(bytes.atLimits)} bytes at all limits, active in the last minute. After a verification they stay for ${REMEMBERED_SECONDS} s, which the plan counts. Redemption records come on top.`,
  )
  return lines
}

function attackerLines({ browserHashesPerSecond }: Measurements, { nativeHashesPerSecond }: Assumptions) {
  const browser =
    browserHashesPerSecond === undefined
      ? 'The rate of browsers was not measured.'
      : `A browser hashes ${millions(browserHashesPerSecond)} MH/s on one thread, by bench:solver with WASM SIMD.`
  const native = `Native code with AVX-512 does ${number(nativeHashesPerSecond / 1e6)} million hashes a second on one thread: published, not measured here. A GPU does more than two hundred times as many.`
  return [browser, native]
}

function tablesOf({ capacity, measurements }: CapacityPage): ReportTable[] {
  const tables = [
    planTable(capacity),
    millionTable(capacity),
    memoryTable(capacity),
    defenceTable(capacity, measurements),
  ]
  return tables.filter(({ rows }) => rows.length > 0)
}

function planTable({ plans }: Capacity): ReportTable {
  const hasMemory = plans.some(({ redisBytes }) => redisBytes !== undefined)
  return table<Plan>(
    'What a load takes, with Redis',
    [
      [
        right('challenges/s, each with its verification and redemption'),
        plan => integer(plan.challengesPerSecond),
      ],
      [right('worker cores'), plan => spread(plan.workerCores, integer)],
      [right('Redis primaries'), plan => spread(plan.redisPrimaries, integer)],
      ...(hasMemory
        ? ([
            [
              right('Redis memory, every visitor from an address of its own'),
              ({ redisBytes }: Plan) => gibibytes(redisBytes!),
            ],
          ] as const)
        : []),
    ],
    plans,
  )
}

function millionTable({ perMillion, visitorsPerCore }: Capacity): ReportTable {
  return table(
    'What a million verifications cost',
    [
      [left('store'), store => STORE_NAMES[store]],
      [right('CPU-seconds'), store => spread(perMillion[store]!.cpuSeconds)],
      [right('money'), store => spread(perMillion[store]!.price)],
      [right('visitors/s on one worker core'), store => integer(Math.floor(visitorsPerCore[store]!))],
    ],
    (['redis', 'embedded'] as const).filter(store => perMillion[store] !== undefined),
  )
}

function memoryTable({ redisBytesPerMillionAddresses: bytes }: Capacity): ReportTable {
  const rows =
    bytes === undefined
      ? []
      : ([
          ['typical', bytes.typical],
          ['all at their limits', bytes.atLimits],
        ] as const)
  return table(
    'Redis memory of a million addresses active in the last minute',
    [
      [left('addresses'), ([name]) => name],
      [right('memory'), ([, ofThem]) => gibibytes(ofThem)],
    ],
    rows,
  )
}

function defenceTable({ defences }: Capacity, { browserHashesPerSecond }: Measurements): ReportTable {
  const names =
    browserHashesPerSecond === undefined ? (['native'] as const) : (['browser', 'native'] as const)
  return table<Defence>(
    'What an accepted proof costs an attacker, by mean, and how many times what it costs us',
    [
      [
        right('bits'),
        ({ difficulty: bits }) => (bits === DEFAULT_DIFFICULTY ? `${bits} (default)` : String(bits)),
      ],
      [right('hashes'), ({ meanHashes }) => integer(meanHashes)],
      ...names.flatMap(name => [
        [
          right(`${ATTACKER_NAMES[name]}: CPU-seconds`),
          ({ attackers }: Defence) => number(attackers[name]!.cpuSeconds),
        ] as const,
        [right('times ours'), ({ attackers }: Defence) => number(attackers[name]!.timesOurs)] as const,
      ]),
    ],
    defences,
  )
}

const THREE_DIGITS = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

/** Three digits are more than such figures know. */
function number(value: number): string {
  return THREE_DIGITS.format(value)
}

function integer(value: number): string {
  return value.toLocaleString('en')
}

function spread({ median, min, max }: Spread, text: (value: number) => string = number): string {
  const [middle, low, high] = [median, min, max].map(text)
  return low === high ? middle! : `${middle} (${low}-${high})`
}

function millions({ median, min, max }: Spread): string {
  return spread({ median: median / 1e6, min: min / 1e6, max: max / 1e6 })
}

function gibibytes(bytes: number): string {
  return `${number(bytes / 2 ** 30)} GiB`
}
