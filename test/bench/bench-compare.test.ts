import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { COMPARE } from '../../bench/compare/main.ts'
import {
  type Case,
  checkLoadGenerator,
  compareJobs,
  jobsOf,
  measurePair,
  type Roots,
} from '../../bench/compare/pairs.ts'
import {
  type Comparison,
  comparisonOf,
  exitCodeOf,
  isRegression,
  pairedRatio,
  reportOf,
  verdictOf,
} from '../../bench/compare/report.ts'
import { STEPS } from '../../bench/compare/steps.ts'
import { reportText } from '../../bench/report/publish.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { runBench } from './run-bench.ts'

const ROOT = new URL('../..', import.meta.url).pathname
// Of its own for temporary files, which shows whether anything is left behind.
const folder = temporaryDir('bench')

async function worktrees(): Promise<string> {
  return (await promisify(execFile)('git', ['worktree', 'list', '--porcelain'], { cwd: ROOT })).stdout
}

test('the steps of HEAD against this tree, and nothing is left behind', async () => {
  const page = join(folder, 'page.html')
  const small = ['--only', 'micro', '--repeat', '2', '--seconds', '0.2', '--threshold', '10']
  const { stdout } = await runBench(
    { name: 'compare', tmp: folder },
    'HEAD',
    ...small,
    '--json',
    '--report',
    page,
  )
  const { commit, cases } = JSON.parse(stdout) as Comparison
  assert.match(commit, /^[0-9a-f]{40}$/)
  assert.deepEqual(
    cases.map(({ part, name }) => [part, name]),
    Object.keys(STEPS).map(name => ['micro', name]),
  )
  // Between the change of a module's interface and its commit, HEAD has another one than this tree.
  for (const { name, verdict, problem, ratio, ratios, old, new: now } of cases) {
    assert.notEqual(verdict, 'FAILED', `${name}: ${problem}`)
    if (verdict === 'not comparable') continue
    assert.equal(ratios!.length, 2, name)
    const figures = [...ratios!, ...Object.values(ratio!), ...Object.values(old!), ...Object.values(now!)]
    for (const figure of figures) assert.ok(figure > 0 && Number.isFinite(figure), `${name}: ${figure}`)
  }
  const html = readFileSync(page, 'utf8')
  for (const name of Object.keys(STEPS)) assert.ok(html.includes(name), name)
  assert.ok(!(await worktrees()).includes(folder))
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('powgate-compare-')),
    [],
  )
})

test('an interval is what Student says', () => {
  // Logarithms of the ratios: 0, 0.1, 0.2; mean 0.1, standard deviation 0.1, t(2) = 4.303.
  const ratios = [1, Math.exp(0.1), Math.exp(0.2)]
  const { median, low, high } = pairedRatio(
    [10, 20, 30],
    ratios.map((ratio, index) => ratio * [10, 20, 30][index]!),
  )
  const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`)
  near(median, Math.exp(0.1))
  near(low, Math.exp(0.1 - (4.303 * 0.1) / Math.sqrt(3)))
  near(high, Math.exp(0.1 + (4.303 * 0.1) / Math.sqrt(3)))
  const inverse = pairedRatio([1.1, 1.2, 1.4], [1, 1, 1])
  const straight = pairedRatio([1, 1, 1], [1.1, 1.2, 1.4])
  near(inverse.low, 1 / straight.high)
  near(inverse.high, 1 / straight.low)
  assert.deepEqual(pairedRatio([2], [4]), { median: 2, low: 0, high: Number.POSITIVE_INFINITY })
  for (const [olds, news] of [
    [[], []],
    [[1, 2], [1]],
    [
      [1, 0],
      [1, 1],
    ],
    [
      [1, 1],
      [1, Number.NaN],
    ],
  ]) {
    assert.throws(() => pairedRatio(olds!, news!), RangeError)
  }
})

test('intervals hold the truth as often as they say', () => {
  let state = 20_260_101
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state + 0.5) / 2 ** 32
  }
  const normal = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random())
  const ROUNDS = 4000
  let hits = 0
  for (let round = 0; round < ROUNDS; round++) {
    const olds = Array.from({ length: 7 }, () => Math.exp(0.1 * normal()))
    const news = olds.map(old => old * 1.02 * Math.exp(0.05 * normal()))
    const { low, high } = pairedRatio(olds, news)
    if (low <= 1.02 && 1.02 <= high) hits++
  }
  assert.ok(Math.abs(hits / ROUNDS - 0.95) < 0.015, `${hits} of ${ROUNDS}`)
})

const optionsOf = (...args: string[]) => ({ ...COMPARE.parse(['HEAD', ...args]), revision: 'HEAD' })
const OPTIONS = optionsOf()

function verdictsOf(...cases: readonly Case[]) {
  const comparison = comparisonOf(OPTIONS, 'c0ffee', cases)
  return {
    exitCode: exitCodeOf(comparison.cases),
    text: reportText(reportOf(comparison)),
    cases: comparison.cases,
  }
}

function series(name: string, news: (old: number) => number): Case {
  const olds = [20, 21, 20.5, 24, 20.2, 20.8, 21.3]
  return { part: 'http', name, unit: 'us', olds, news: olds.map(news) }
}

test('a slower series fails, a faster, a doubtful and a slightly slower one do not', () => {
  let turn = 0
  const wobble = () => 1 + 0.004 * (turn++ % 3)
  const slower = series('slower', old => old * 1.1 * wobble())
  const faster = series('faster', old => old * 0.8 * wobble())
  const doubtful = series('doubtful', old => old * (turn++ % 2 === 0 ? 1.6 : 0.8))
  const slightly = series('slightly', old => old * 1.02 * wobble())
  const { exitCode, cases, text } = verdictsOf(slower, faster, doubtful, slightly)
  assert.equal(exitCode, 1)
  assert.deepEqual(
    cases.map(({ verdict, isRegression: isBad }) => [verdict, isBad]),
    [
      ['slower', true],
      ['faster', false],
      ['no difference shown', false],
      ['slower', false],
    ],
  )
  assert.match(text, /^slower .* SLOWER, beyond 1\.05$/m)
  assert.equal(verdictsOf(faster, doubtful, slightly).exitCode, 0)
  const same = series('same', old => old)
  assert.deepEqual(verdictsOf(same).cases[0]!.ratio, { median: 1, low: 1, high: 1 })
  assert.equal(verdictsOf(same).cases[0]!.verdict, 'no difference shown')
  const wide = { median: 1.3, low: 0.99, high: 1.8 }
  assert.ok(!isRegression(wide, 1.05) && isRegression({ ...wide, low: 1.01 }, 1.05))
  assert.equal(verdictOf({ median: 0.9, low: 0.8, high: 0.99 }), 'faster')
})

test('what this tree alone cannot do is a failure, what the revision cannot do is not comparable', () => {
  const broken = (side: 'old' | 'new'): Case => {
    const problem = { side, text: 'there is no such function' }
    return { part: 'micro', name: 'score', unit: 'ns', olds: [], news: [], problem }
  }
  const same = series('same', old => old)
  assert.equal(verdictsOf(same, broken('old')).exitCode, 0)
  assert.match(
    verdictsOf(same, broken('old')).text,
    /not comparable: the revision: there is no such function\n/,
  )
  assert.equal(verdictsOf(same, broken('new')).exitCode, 1)
  assert.equal(verdictsOf(broken('old')).exitCode, 1, 'nothing was compared')
})

/** A tree with some modules of this one, and some of its own. */
function treeWith(name: string, modules: Readonly<Record<string, string>>): string {
  const root = join(folder, name)
  const ours = ['domain/keyring.ts', 'domain/address.ts', 'domain/nonce.ts'].map(path => {
    return [path, `export * from ${JSON.stringify(join(ROOT, 'src', path))}`] as const
  })
  for (const [path, text] of [...ours, ...Object.entries(modules)]) {
    mkdirSync(dirname(join(root, 'src', path)), { recursive: true })
    writeFileSync(join(root, 'src', path), text)
  }
  return root
}

test('a step that is missing or does something else is not measured', async () => {
  const careless = treeWith('careless', { 'domain/pow.ts': 'export const checkProof = () => true' })
  const lacking = treeWith('lacking', {})
  const options = optionsOf('--only', 'micro', '--filter', 'proof check', '--seconds', '0.5')
  const compare = (old: string, now: string) => compareAll(options, { old, new: now })
  const [other] = await compare(careless, ROOT)
  assert.deepEqual(other!.problem, { side: 'old', text: 'gives something else than it should' })
  const [missing] = await compare(ROOT, lacking)
  assert.equal(missing!.problem!.side, 'new')
  assert.match(missing!.problem!.text, /pow\.ts/)
})

function compareAll(options: typeof OPTIONS, roots: Roots): Promise<Case[]> {
  return compareJobs(jobsOf(options), roots, 2, { signal: new AbortController().signal, tell: () => {} })
}

test('a tree under load beside itself: the service and Redis, and a tree without a load generator', async () => {
  const args = ['--only', 'http', '--endpoint', 'verify', '--store', 'redis', '--seconds', '0.3']
  await checkLoadGenerator(ROOT, 'HEAD')
  const cases = await compareAll(optionsOf(...args), { old: ROOT, new: ROOT })
  assert.deepEqual(
    cases.map(({ name, problem }) => [name, problem]),
    [
      ['/verify on redis, service', undefined],
      ['/verify on redis, Redis', undefined],
    ],
  )
  for (const { name, olds, news } of cases) {
    assert.deepEqual([olds.length, news.length], [2, 2])
    for (const value of [...olds, ...news]) assert.ok(value > 0 && value < 1e6, `${name}: ${value}`)
  }
  await assert.rejects(checkLoadGenerator(folder, 'v0'), {
    name: 'UsageError',
    message: /^v0 has no load generator .*server\.ts/,
  })
})

test('pairs alternate, so that neither side is always first', async () => {
  const order: string[] = []
  for (let pair = 0; pair < 3; pair++) {
    const values = await measurePair(pair, async side => {
      order.push(side)
      return side
    })
    assert.deepEqual(values, { old: 'old', new: 'new' })
  }
  assert.deepEqual(order, ['old', 'new', 'new', 'old', 'old', 'new'])
})

test('the options choose the cases', () => {
  const names = (...args: string[]) =>
    jobsOf(optionsOf(...args)).flatMap(({ costs }) => costs.map(({ name }) => name))
  assert.equal(names('--only', 'http').length, 9)
  assert.equal(names().length, 9 + Object.keys(STEPS).length)
  assert.deepEqual(names('--endpoint', 'verify', '--filter', 'Redis'), ['/verify on redis, Redis'])
})
