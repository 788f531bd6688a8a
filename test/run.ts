/**
 * Runs the tests: `npm test` the quick suite, `npm run test:rest` what takes longer, `npm run test:release` what a release needs
 * and a change does not, `npm run test:all` all three, `npm test -- PATH...` some files or folders, of the last build.
 *
 * Each file is a process of its own. A line tells of each file that has ended; the last line is the sum.
 */

import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { temporaryDir } from './harness/temporary.ts'
import { words } from './harness/values.ts'
import { IS_ROOT, installNeedsOf, type Suite } from './setup.ts'

const ROOT = new URL('..', import.meta.url).pathname
const FILE_MS_MAX = 900_000
const FAILURE_LINES = 40

/** What `npm test` leaves to `npm run test:rest`; all others but release/ are quick. These lists name files and folders of test/. */
const REST = words(
  'bench proxy check/check cli/hosts cli/try client/page client/recipes client/tutorials contract/hosts dashboard/alerts',
  'dashboard/dashboard dashboard/looks e2e/demo e2e/failover e2e/logs',
  'e2e/lost-sites e2e/reload e2e/rolling e2e/slow-clients e2e/start e2e/store-process http/closed-connections metrics/metrics',
  'store/redis-clocks store/redis-cluster store/redis-security widget/accessibility widget/box widget/compat widget/element',
  'widget/engines',
  'widget/errors widget/gpu widget/markup widget/modes widget/pages widget/send-table widget/send widget/solvers',
)

/** The suite `quick` runs these on Redis, and `rest` on Valkey. */
const ON_EACH_ENGINE = ['store/redis', 'store/redis-advice']

/**
 * Files that keep the whole machine busy run one after the other, after the others: widget/gpu computes in software what a graphics card
 * would. Other files of widget/ may share the machine, because they judge CPU time.
 */
const ALONE = words('e2e/failover e2e/rolling release widget/gpu')
/** Two browsers at a time, before these: their pages often wait. */
const IN_PAIRS = words('widget')
/** Files of those folders that open no browser. */
const IN_POOL = words('widget/build widget/solvers')
/** How many of all others run at a time: one more than processors, since one mostly waits. At least 3, because 2 stands for the pairs. */
const POOL = Math.max(3, availableParallelism() + 1)

/** Files that take longest start first, so that the end does not wait for one of them. */
const FIRST = words(
  'e2e/start contract/contract contract/settings contract/site-settings process/store-process e2e/privacy contract/outage',
  'store/embedded store/redis e2e/assets',
  'bench/benches bench/effect client/recipes client/tutorials client/page contract/hosts e2e/logs proxy/samples metrics/metrics',
  'widget/pages widget/errors widget/accessibility widget/element widget/send-table widget/send',
)

/**
 * Files whose partner is a browser, a proxy or another program that we do not write. On a busy machine such a partner is late
 * now and then, so one of these that fails runs once more, alone; the last line names it. All others have one try: what fails
 * there once in a hundred runs is a fault of ours.
 */
const TWO_TRIES = words(
  'client/page client/recipes client/tutorials dashboard/dashboard dashboard/looks',
  'proxy widget',
)

/** Files that only root can run. */
const FOR_ROOT = ['release/container/container', 'release/container/container-24']

interface Ended {
  readonly file: string
  readonly passed: number
  readonly failed: number
  readonly seconds: number
  readonly output: string
  /** Whether this is a second try, after one that failed. */
  readonly isRepeat?: boolean
}

const { values, positionals } = parseArgs({
  options: { suite: { type: 'string', default: 'quick' } },
  allowPositionals: true,
})
const startedAtMs = performance.now()
const suite = values.suite as Suite
process.exitCode = await main()

async function main(): Promise<number> {
  if (positionals.length > 0) return report(await runFiles(positionals.flatMap(named)))
  installNeedsOf(suite)
  const isRelease = suite === 'release' || suite === 'all'
  if (isRelease && !IS_ROOT) process.stdout.write(`Left to root: ${FOR_ROOT.join(', ')}\n`)
  const checks: Promise<Ended>[] = []
  if (suite === 'quick' || suite === 'all') {
    // Only the build is waited for: `typecheck` checks its types meanwhile.
    checks.push(npmRun('lint'), npmRun('typecheck'))
    const build = await npmRun('build', { TSC: '--noCheck' })
    if (build.failed > 0) return report([build, ...(await Promise.all(checks))])
  }
  // Tests note here the secrets they make and what services put out; canaries.ts looks for the former in the latter.
  process.env.CANARY_DIR = temporaryDir('canaries')
  const ended = await runFiles(filesOf(suite))
  const args = ['--import', 'tsx', 'test/canaries.ts', suite]
  const search = await runProgram('canaries', process.execPath, args)
  tell(search, 'at the end')
  return report([...(await Promise.all(checks)), ...ended, search])
}

function filesOf(suite: Suite): string[] {
  const names = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  return names
    .filter(name => name.endsWith('.test.ts') && !name.includes('node_modules/')) // tests of installed packages
    .filter(name => IS_ROOT || !isIn(FOR_ROOT, name))
    .filter(name => {
      if (suite === 'all' || (suite === 'rest' && isIn(ON_EACH_ENGINE, name))) return true
      const own = name.startsWith('release/') ? 'release' : isIn(REST, name) ? 'rest' : 'quick'
      return suite === own
    })
    .map(name => join(ROOT, 'test', name))
}

/** A file, or all test files of a folder, by its path below the root. */
function named(path: string): string[] {
  const whole = join(ROOT, path)
  const files = filesOf('all').filter(file => file === whole || file.startsWith(join(whole, '/')))
  return files.length > 0 ? files : [whole]
}

function isIn(list: readonly string[], name: string): boolean {
  return list.some(entry => name === `${entry}.test.ts` || name.startsWith(`${entry}/`))
}

async function runFiles(files: readonly string[]): Promise<Ended[]> {
  const ended: Ended[] = []
  const runNext = async (queue: string[]) => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const one = await runFile(file)
      ended.push(one)
      tell(one, `${ended.length} of ${files.length}`)
    }
  }
  const first = FIRST.flatMap(name => files.filter(file => isIn([name], inTest(file))))
  const ordered = [...new Set([...first, ...files])]
  // First the pool, then the pairs, then those that run alone.
  for (const atOnce of [POOL, 2, 1]) {
    const queue = ordered.filter(file => atOnceOf(inTest(file)) === atOnce)
    await Promise.all(Array.from({ length: atOnce }, () => runNext(queue)))
  }
  for (const [index, firstTry] of ended.entries()) {
    const file = join(ROOT, firstTry.file)
    if (firstTry.failed === 0 || !isIn(TWO_TRIES, inTest(file))) continue
    ended[index] = { ...(await runFile(file)), isRepeat: true }
    tell(ended[index], 'second try')
  }
  return ended
}

/** How many files run at a time while this one does. */
function atOnceOf(name: string): number {
  if (isIn(ALONE, name)) return 1
  return isIn(IN_PAIRS, name) && !isIn(IN_POOL, name) ? 2 : POOL
}

function inTest(file: string): string {
  return file.slice(join(ROOT, 'test/').length)
}

function runFile(file: string): Promise<Ended> {
  const engines = suite === 'all' ? 'redis,valkey' : suite === 'rest' ? 'valkey' : 'redis'
  const isOnEach = isIn(ON_EACH_ENGINE, inTest(file)) && positionals.length === 0
  const args = ['--import', 'tsx', '--test-reporter=tap', file]
  const env = isOnEach ? { TEST_ENGINES: engines } : {}
  return runProgram(file.slice(ROOT.length), process.execPath, args, env)
}

async function npmRun(script: string, env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const ended = await runProgram(script, 'npm', ['run', '-s', script], env)
  tell(ended, 'npm run')
  return ended
}

/** Runs a program to its end, and counts its tests by its TAP. Never rejects. */
function runProgram(
  name: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  return new Promise(resolve => {
    const start = performance.now()
    const child = spawn(command, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      for (const stream of [child.stdout, child.stderr]) stream.destroy() // a server that the file left has them open
    }, FILE_MS_MAX)
    child.once('close', code => {
      clearTimeout(timer)
      const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
      const failed = count('fail') + count('cancelled')
      resolve({
        file: name,
        passed: count('pass'),
        // One that ends with an error, or by a signal, has failed whatever it counted.
        failed: code === 0 ? failed : Math.max(1, failed),
        seconds: (performance.now() - start) / 1000,
        output,
      })
    })
  })
}

function tell({ file, passed, failed, seconds, output }: Ended, what: string): void {
  const verdict = failed === 0 ? 'ok    ' : 'FAILED'
  process.stdout.write(`${verdict} ${what}: ${file}, ${passed} passed, ${seconds.toFixed(1)} s\n`)
  if (failed > 0) process.stdout.write(`${failuresOf(output)}\n`)
}

/** The blocks of failed tests in TAP, each cut to what a terminal shows at once; the end of it all where there are none. */
function failuresOf(output: string): string {
  const blocks = output.match(/^( *)not ok .*\n(?:\1 {2}.*\n)*/gm) ?? []
  const own = blocks.filter(block => !block.includes('subtestsFailed'))
  if (own.length === 0) return output.slice(-10_000)
  return own.map(block => block.split('\n').slice(0, FAILURE_LINES).join('\n')).join('\n')
}

/** @returns the exit code */
function report(ended: readonly Ended[]): number {
  const sum = (of: (one: Ended) => number) => ended.reduce((total, one) => total + of(one), 0)
  const failed = sum(one => one.failed)
  const bad = ended.filter(one => one.failed > 0).map(one => one.file)
  const seconds = Math.round((performance.now() - startedAtMs) / 1000)
  const minutes = `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const repeated = ended.filter(one => one.isRepeat && one.failed === 0).map(one => one.file)
  const parts = [
    `${sum(one => one.passed).toLocaleString('en-US')} tests passed`,
    `${failed} failed${bad.length > 0 ? `: ${bad.join(', ')}` : ''}`,
    ...(repeated.length > 0 ? [`passed only at the second try: ${repeated.join(', ')}`] : []),
    `in ${minutes}`,
  ]
  const hint = suite === 'quick' && positionals.length === 0 ? ' (npm run test:all runs all others too)' : ''
  process.stdout.write(`${parts.join(', ')}${hint}\n`)
  return failed === 0 ? 0 : 1
}
