/** A short run of each bench, as npm runs it: the JSON alone on standard output, every figure a number, nothing left behind. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { STEPS } from '../../bench/micro/steps.ts'
import { CONTENDER_NAMES } from '../../bench/solver/contenders.ts'
import { OPERATIONS } from '../../bench/store/traffic.ts'
import { STORE_KINDS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const run = promisify(execFile)

function runBench(words: string, tmp = temporaryDir('bench')) {
  const command = ['--import', 'tsx', 'bench/cli.ts', ...words.split(' ')]
  return run(process.execPath, command, { cwd: ROOT, env: { ...process.env, TMPDIR: tmp }, timeout: 600_000 })
}

// biome-ignore lint/suspicious/noExplicitAny: each bench has a report of its own
async function reportOf(words: string, tmp = temporaryDir('bench')): Promise<any> {
  const { stdout } = await runBench(`${words} --json`, tmp)
  assert.doesNotMatch(stdout, /:\s*null\b/, 'what is no number becomes null in JSON')
  const left = readdirSync(tmp).filter(name => name.startsWith('powgate-'))
  assert.deepEqual(left, [])
  return JSON.parse(stdout)
}

test('micro: every step has a row, and aims are judged', async () => {
  const { rows, aims } = await reportOf('micro --milliseconds 5 --repeat 2')
  assert.ok(rows.length === STEPS.length && aims.length > 2)
  for (const { name, ns } of rows) assert.ok(0 < ns.min && ns.min <= ns.median && ns.median <= ns.max, name)
})

test('http: on both stores and a bare server, at full load and at a fixed rate', async () => {
  const sizes = '--seconds 0.3 --warmup 0.1 --repeat 1 --busy 25'
  const { rows } = await reportOf(`http --endpoint verify-token ${sizes}`)
  assert.equal(rows.length, 5) // bare and both stores at full load, both stores at the fixed rate
  for (const { endpoint, server, busy, isOk, notes, figures } of rows) {
    assert.ok(isOk, `${endpoint} on ${server}: ${notes}`)
    if (busy === undefined) continue
    const due = 0.3 * figures.wantedPerSecond.median
    assert.ok(Math.abs(figures.requests.median - due) <= 1, 'each request that was due is measured')
  }
})

test('store: costs, memory and growth on both stores', async () => {
  const { rows } = await reportOf('store --repeat 1 --operations 100 --max-addresses 1000')
  // Beside the costs of each operation, two rows of memory and two of growth.
  assert.equal(rows.length, STORE_KINDS.length * (OPERATIONS.length + 4))
})

test('solver: every solver finds what node:crypto finds, the GPU in software too', async () => {
  const { rates, solves, aims, gpu } = await reportOf('solver --quick --gpu software')
  assert.ok(rates.length >= CONTENDER_NAMES.length && aims.length === 2 && gpu.startMs.median > 0)
  const solved = solves.map(
    (row: { puzzle: string; difficulty: number }) => `${row.puzzle} ${row.difficulty}`,
  )
  assert.deepEqual(solved, ['sha256 1', 'sha256 18', 'hashwx 1', 'hashwx 16'])
})

test('solver --slow: a token with a quarter of a core', async () => {
  if (process.getuid!() !== 0) return assert.rejects(runBench('solver --slow --quick'), /--slow needs root/)
  const [{ cores, runs }] = await reportOf('solver --slow --quick')
  assert.ok(cores === 0.25 && runs[0].solveTimeMs < runs[0].tokenMs)
})

test('effect: a scenario of one’s own', async () => {
  const path = join(temporaryDir('scenario'), 'mine.json')
  const people = [{ name: 'people', rate: 60, addresses: { addresses: 10 } }]
  writeFileSync(path, JSON.stringify({ name: 'mine', minutes: 2, people }))
  const { scenario, all } = await reportOf(`effect --scenario ${path} --speed 1`)
  assert.ok(scenario === 'mine' && all.p50 > 0)
  const stderr = /^--scenario: package\.json: expected an object with at least name, .*\n$/
  await assert.rejects(runBench('effect --scenario package.json'), { code: 1, stderr })
})

test('compare: the steps of HEAD against this tree, and no worktree is left', async () => {
  const tmp = temporaryDir('bench')
  const small = '--only micro --filter nonce --pairs 2 --within 50 --seconds 0.2 --threshold 10'
  const { cases } = await reportOf(`compare HEAD ${small}`, tmp)
  assert.equal(cases.length, 4) // CPU time and garbage of two steps, minting and reading a nonce
  // What HEAD cannot run, because this tree has changed a module's interface, is "not comparable"; FAILED is a fault of this tree.
  for (const { name, verdict, problem } of cases) assert.notEqual(verdict, 'FAILED', `${name}: ${problem}`)
  const { stdout } = await run('git', ['worktree', 'list'], { cwd: ROOT })
  assert.ok(!stdout.includes(tmp))
})

test('a call that cannot be understood ends with 2, one line and nothing started; help with 0', async () => {
  for (const [words, stderr] of [
    ['nonsense', /^expected one of micro, http, .*\n$/],
    ['compare', /^REV: missing; expected one revision.*\n$/],
    ['compare no-such-revision', /^there is no revision "no-such-revision" here\n$/],
    ['http --seconds 0', /^--seconds: expected a number from 0\.1 to 60, got "0"\n$/],
    ['http --nonsense', /^--nonsense: there is no such flag; .*--store.*\n$/],
  ] as const)
    await assert.rejects(runBench(words), { code: 2, stderr })
  const { stdout } = await runBench('http --help')
  assert.match(stdout, /\n {2}--seconds N +Measured time of a case; 0\.1 to 60, default 3\.\n/)
})
