/** Lets other numbers of the policy decide once more what traces hold (src/trace/recorder.ts has their form). */

import { climbOf, difficultyOf } from '../../src/domain/difficulty.ts'
import { NO_TRAFFIC } from '../../src/domain/meters.ts'
import { didYouMean } from '../../src/domain/nearest.ts'
import { DEFAULT_POLICY, type DifficultyPolicy, type NetworkLevel } from '../../src/domain/policy.ts'
import { DEVICE_CLASSES, type DeviceClass } from '../../src/domain/solve-time.ts'
import { TRACE_FORMAT } from '../../src/trace/recorder.ts'
import { ToolError } from '../../test/harness/command-line.ts'
import { left, meanOf, reportText, right, table } from '../report/report.ts'
import { read } from './scenario.ts'

const LEVELS = [...DEFAULT_POLICY.networksV4, ...DEFAULT_POLICY.networksV6]
const KNOWN = new Map([...pathsOf(DEFAULT_POLICY), ['networksV4', []], ['networksV6', []]])
/** These decide what is counted, and which solutions are too cheap. A trace tells of neither. */
const UNSEEN = /Ms$|^(lateBits|siteLateBits|quietProofs\w*)$/

/** Each value by its path, such as `networksV4[24].free`. */
function pathsOf(value: unknown, path = ''): [path: string, value: unknown][] {
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return [[path, value]]
  if (Array.isArray(value)) return value.flatMap(one => pathsOf(one, `${path}[${one?.prefixBits}]`))
  return Object.entries(value).flatMap(([name, one]) => pathsOf(one, path === '' ? name : `${path}.${name}`))
}

/** The policy with the numbers of a JSON file. A level keeps what the file leaves out; one that its list lacks is not counted. */
function policyFrom(path: string): DifficultyPolicy {
  const given = { ...DEFAULT_POLICY, ...read<Partial<DifficultyPolicy>>(path) }
  const problems = pathsOf(given).flatMap(([name, value]) => problemOf(name, value) ?? [])
  if (problems.length > 0) throw new ToolError(problems.map(problem => `${path}: ${problem}`).join('\n'))
  const whole = (level: NetworkLevel) => ({ ...LEVELS.find(isSame(level))!, ...level })
  return { ...given, networksV4: given.networksV4.map(whole), networksV6: given.networksV6.map(whole) }
}

const isSame = (one: { prefixBits: number }) => (other: typeof one) => one.prefixBits === other.prefixBits

function problemOf(name: string, value: unknown): string | undefined {
  const own = KNOWN.get(name)
  const [known, got] = [own, value].map(one => JSON.stringify(one))
  if (own === undefined) return `${name}: there is no such number${didYouMean(name, [...KNOWN.keys()])}`
  if (got === known) return undefined
  if (UNSEEN.test(name)) return `${name}: a trace cannot show what it does`
  const isNumber = typeof own === 'number'
  if (isNumber && typeof value === 'number' && value >= 0) return undefined
  return `${name}: expected ${isNumber ? 'a number from 0' : known}, got ${got}`
}

/** How many numbers a line has. A challenge has 14, and four for each network. */
const LENGTHS: Readonly<Record<string, number>> = { s: 4, a: 1, f: 1 }
type Four = [number, number, number, number]
type Challenge = [...Four, ...Four, ...Four, number, ...number[]]

/** Of traces. A last line that is cut off is left out: a worker may be writing it. */
function replayed(paths: readonly string[], policy: DifficultyPolicy) {
  const decisions: ReturnType<typeof decided>[] = []
  for (const path of paths) {
    const [head = '', ...lines] = read(path, text => text.split('\n').slice(0, -1))
    if (!head.startsWith(`{"format":"${TRACE_FORMAT}"`))
      throw new ToolError(`${path}: expected a file of POWGATE_TRACE_FILE, which starts with ${TRACE_FORMAT}`)
    const sites = new Map<number, readonly number[]>()
    for (const [index, line] of lines.entries()) {
      const [kind = '', ...fields] = line.replace(/^s \S+/, 's').split(' ')
      const numbers = fields.map(Number) as Challenge
      const site = sites.get(numbers[0])
      const isLong = kind === 'c' && site && numbers.length >= 14 && numbers.length % 4 === 2
      if (!(isLong || numbers.length === LENGTHS[kind]) || numbers.some(Number.isNaN))
        throw new ToolError(`${path}, line ${index + 2}: not a line of a trace`)
      if (kind === 's') sites.set(numbers[0], numbers.slice(1))
      if (kind === 'c') decisions.push(decided(numbers, site as Four, policy))
    }
  }
  if (decisions.length === 0) throw new ToolError('--trace: no challenge was recorded')
  return decisions
}

function decided(numbers: Challenge, [min, max, limit]: Four, policy: DifficultyPolicy) {
  const [, , base, challenges, failures, accepted, ...rates] = numbers
  const [repeat, repeatUsual, first, firstUsual, siteExpected, all, allUsual, ...rest] = rates
  const networks = Array.from({ length: (rest.length - 1) / 4 }, (_, index) => {
    const [prefixBits, recent, usual, days] = rest.slice(index * 4) as Four
    return { prefixBits, recent, usual, days }
  })
  const traffic = {
    ...NO_TRAFFIC,
    networks: networks.filter(one => [...policy.networksV4, ...policy.networksV6].some(isSame(one))),
    all: { recent: all, usual: allUsual, days: 0 },
    siteRepeat: { recent: repeat, usual: repeatUsual, days: 0 },
    siteFirst: { recent: first, usual: firstUsual, days: 0 },
    siteExpected,
  }
  const climb = climbOf({ challenges, limit, failures, accepted }, traffic, policy)
  return { recorded: rest.at(-1)!, replayed: difficultyOf({ base, min, max }, climb) }
}

/** Prints how many challenges differ, and what people would have waited. @returns the exit code */
export function replay(paths: readonly string[], policy?: string): number {
  const decisions = replayed(paths, policy === undefined ? DEFAULT_POLICY : policyFrom(policy))
  const counts = new Map<number, number>()
  for (const { recorded, replayed } of decisions)
    counts.set(replayed - recorded, (counts.get(replayed - recorded) ?? 0) + 1)
  const differences = [...counts].sort(([one], [other]) => one - other)
  const ofDifference = [
    [left('bits more'), ([more]: [number, number]) => (more > 0 ? `+${more}` : String(more))],
    [right('challenges'), ([, count]: [number, number]) => String(count)],
    [right('share'), ([, count]: [number, number]) => `${((100 * count) / decisions.length).toFixed(1)} %`],
  ] as const
  const meanSeconds = (bits: 'recorded' | 'replayed') => {
    const hashes = meanOf(decisions.map(each => 2 ** each[bits]))
    return ({ medianMhs, sigma }: DeviceClass) =>
      ((hashes / medianMhs.sha256 / 1e6) * Math.exp(sigma ** 2 / 2)).toPrecision(3)
  }
  const ofDevice = [
    [left('mean seconds'), ({ name }: DeviceClass) => name],
    [right('recorded'), meanSeconds('recorded')],
    [right('by the policy'), meanSeconds('replayed')],
  ] as const
  const tables = [table('', ofDifference, differences), table('', ofDevice, DEVICE_CLASSES)]
  process.stdout.write(`${reportText([`${decisions.length} challenges`, ...tables])}\n`)
  return 0
}
