import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { COMPARE } from '../../bench/compare/main.ts'
import {
  type Case,
  casesOf,
  type Job,
  jobsOf,
  type Measured,
  measurePairs,
} from '../../bench/compare/pairs.ts'
import { type Comparison, comparisonOf, exitCodeOf, reportOf } from '../../bench/compare/report.ts'
import { savedReport, savedRows } from '../../bench/compare/saved.ts'
import type { Roots } from '../../bench/compare/services.ts'
import { isRegression, pairedRatio, verdictOf } from '../../bench/compare/statistics.ts'
import { Processes } from '../../bench/micro/processes.ts'
import { HASH, PLAIN, STEPS } from '../../bench/micro/steps.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { runBench } from './run-bench.ts'

const ROOT = new URL('../..', import.meta.url).pathname
// Of its own for temporary files, which shows whether anything is left behind.
const folder = temporaryDir('bench')

async function worktrees(): Promise<string> {
  return (await promisify(execFile)('git', ['worktree', 'list', '--porcelain'], { cwd: ROOT })).stdout
}

const NAMES = STEPS.map(({ name }) => name).filter(name => name !== HASH && name !== PLAIN)

test('the steps of HEAD against this tree, as JSON alone, and nothing is left behind', async () => {
  const small = '--only micro --filter nonce --pairs 2 --within 50 --seconds 0.2 --threshold 10'.split(' ')
  const { stdout } = await runBench({ name: 'compare', tmp: folder }, 'HEAD', ...small, '--json')
  const { commit, cases } = JSON.parse(stdout) as Comparison
  assert.match(commit, /^[0-9a-f]{40}$/)
  assert.deepEqual(
    cases.map(({ part, name }) => [part, name]),
    NAMES.filter(name => name.includes('nonce')).flatMap(name => [
      ['micro', name],
      ['micro', `${name}, garbage`],
    ]),
  )
  // Between the change of a module's interface and its commit, HEAD has another one than this tree.
  for (const { name, verdict, problem, ratio, ratios, old, new: now, couldSee } of cases) {
    assert.notEqual(verdict, 'FAILED', `${name}: ${problem}`)
    if (verdict === 'not comparable') continue
    assert.ok(ratios!.length >= 2, name)
    const figures = [...ratios!, ...Object.values(ratio!), ...Object.values(old!), ...Object.values(now!)]
    for (const figure of figures) assert.ok(figure > 0 && Number.isFinite(figure), `${name}: ${figure}`)
    assert.ok(couldSee! >= 0)
  }
  assert.ok(!(await worktrees()).includes(folder))
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('powgate-compare-')),
    [],
  )
})

test('two saved results stand side by side, with the ratio of their medians and a note where they vary', () => {
  const spread = (median: number, max = median) => ({ median, min: median, max })
  const save = (name: string, us: { median: number }) => {
    const cases = [{ endpoint: 'verify', server: 'redis', figures: { cpuUs: us } }]
    writeFileSync(join(folder, name), JSON.stringify({ cases }))
    return join(folder, name)
  }
  const text = savedReport([], savedRows([save('a.json', spread(20)), save('b.json', spread(28, 44))]))
  assert.match(
    text,
    /^verify redis cpuUs +20 +28 \(28-44\) +1\.400 +VARIES: the longest is 1\.6 times the shortest$/m,
  )
  assert.throws(() => savedRows(['one.json']), /^UsageError: --report: expected two files$/)
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
  assert.throws(() => pairedRatio([], []), RangeError)
  assert.throws(() => pairedRatio([1, 2], [1]), RangeError)
  assert.throws(() => pairedRatio([1, 0], [1, 1]), RangeError)
  assert.throws(() => pairedRatio([1, 1], [1, Number.NaN]), RangeError)
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
    text: reportOf(comparison),
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
  const found = cases.map(({ verdict, isRegression: isBad }) => `${verdict} ${isBad}`)
  assert.deepEqual(found, ['slower true', 'faster false', 'no difference shown false', 'slower false'])
  assert.match(text, /^slower .* 7 +0\.\d% +SLOWER, beyond 1\.05$/m)
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

/** A tree with the modules of this one, and some of its own. */
function treeWith(name: string, modules: Readonly<Record<string, string>>): string {
  const root = join(folder, name)
  mkdirSync(root, { recursive: true })
  for (const path of ['src', 'tsconfig.json', 'package.json'])
    cpSync(join(ROOT, path), join(root, path), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  for (const [path, text] of Object.entries(modules)) writeFileSync(join(root, 'src', path), text)
  return root
}

/** The file of a module with one line more at the start of a function. */
function changed(path: string, head: string, line: string): Readonly<Record<string, string>> {
  const text = readFileSync(join(ROOT, 'src', path), 'utf8')
  assert.ok(text.includes(head), head)
  return { [path]: text.replace(head, `${head}\n${line}`) }
}

const PROOF_HEAD = "  puzzle: PuzzleName = 'sha256',\n): boolean {"

async function measuredOf(jobs: readonly Job[], limits: Parameters<typeof measurePairs>[1]): Promise<Case[]> {
  const all = jobs.map((job): Measured => ({ job, pairs: [] }))
  await measurePairs(all, limits)
  return all.flatMap(casesOf)
}

async function compareAll(options: typeof OPTIONS, roots: Roots): Promise<Case[]> {
  const processes = new Processes()
  try {
    const folders = { old: processes.compileTree(roots.old), new: processes.compileTree(roots.new) }
    return await measuredOf(jobsOf(options, { roots, processes, folders }), options)
  } finally {
    await processes.stop()
  }
}

test('a step that is missing or does something else is not measured', async () => {
  const careless = treeWith('careless', changed('domain/pow.ts', PROOF_HEAD, '  return true'))
  const lacking = treeWith('lacking', { 'domain/pow.ts': 'export {}' })
  const options = optionsOf(...'--only micro --filter proof --seconds 0.5 --pairs 2'.split(' '))
  const [other] = await compareAll(options, { old: careless, new: ROOT })
  assert.deepEqual(other!.problem, { side: 'old', text: 'a proof of too few bits is accepted' })
  const [missing] = await compareAll(options, { old: ROOT, new: lacking })
  assert.equal(missing!.problem!.side, 'new')
})

test('changes of known size are seen: one more hash, one more buffer of 64 bytes, none', async () => {
  const withLine = (name: string, line: string) => treeWith(name, changed('domain/pow.ts', PROOF_HEAD, line))
  const hashing = withLine('hashing', "  hash('sha256', nonce, 'binary')")
  const buffering = withLine('buffering', '  input.set(Buffer.alloc(64).subarray(0, 1))')
  const options = optionsOf(...'--only micro --filter proof --seconds 1 --minutes 0.3'.split(' '))
  const verdictsFor = async (tree: string) => {
    const { cases } = verdictsOf(...(await compareAll(options, { old: ROOT, new: tree })))
    return cases.map(({ isRegression: isBad }) => isBad)
  }
  assert.equal((await verdictsFor(hashing))[0], true, 'a hash takes time')
  assert.equal((await verdictsFor(buffering))[1], true, 'a buffer is garbage')
  // Time and garbage, of both puzzles.
  assert.deepEqual(await verdictsFor(ROOT), [false, false, false, false])
})

test('a tree under load beside itself: the service and Redis, and a tree without a load generator', async () => {
  const args = '--only http --endpoint verify --store redis --seconds 0.3 --warmup 0.1'.split(' ')
  const options = optionsOf(...args, '--pairs', '2', '--within', '50')
  const cases = await compareAll(options, { old: ROOT, new: ROOT })
  const names = cases.map(({ name, problem }) => name + (problem?.text ?? ''))
  assert.deepEqual(names, ['/verify on redis, service', '/verify on redis, Redis'])
  for (const { name, olds, news } of cases) {
    assert.ok(olds.length >= 2 && olds.length === news.length)
    for (const value of [...olds, ...news]) assert.ok(value > 0 && value < 1e6, `${name}: ${value}`)
  }
  const [none] = await compareAll(options, { old: treeWith('without a load', {}), new: ROOT })
  assert.match(`${none!.problem?.side}: ${none!.problem?.text}`, /^old: .*server\.ts/)
})

test('pairs are added until the interval is narrow enough, or time is up', async () => {
  const job = (noise: number): Job => ({
    part: 'micro',
    costs: [{ name: 'a', unit: 'ns' }],
    measure: async pair => ({ old: [100], new: [pair % 2 === 0 ? 100 : 100 * noise] }),
  })
  const pairsOf = async (noise: number, minutes: number) => {
    return (await measuredOf([job(noise)], { within: 2, pairs: 5, minutes }))[0]!.olds.length
  }
  assert.equal(await pairsOf(1, 1), 5)
  const some = await pairsOf(1.05, 1)
  assert.ok(some > 5 && some < 100, `${some}`)
  assert.equal(await pairsOf(3, 0), 2)
})

test('the options choose the cases', () => {
  const tools = { roots: { old: '', new: '' }, folders: { old: '', new: '' }, processes: {} as Processes }
  const names = (...args: string[]) =>
    jobsOf(optionsOf(...args), tools).flatMap(({ costs }) => costs.map(({ name }) => name))
  assert.equal(names('--only', 'http').length, 9)
  assert.equal(names().length, 9 + 2 * NAMES.length)
  assert.deepEqual(names('--endpoint', 'verify', '--filter', 'on redis, Redis'), [
    '/verify on redis, service',
    '/verify on redis, Redis',
  ])
})
