import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { COMPARE } from '../../bench/compare/main.ts'
import type { Case } from '../../bench/compare/pairs.ts'
import { type Comparison, comparisonOf, exitCodeOf, reportOf } from '../../bench/compare/report.ts'
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
})
