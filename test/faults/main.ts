/**
 * `npm run test:faults`: shows what the tests notice. Puts each fault of faults.txt into a copy of the tree, runs the tests
 * that its line names, and reports which faults went unnoticed. Exits with 1 if one did that is not explained.
 */

import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Fault, faults } from './faults.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const TEST_MS_MAX = 300_000
/** What a copy of the tree needs: a test that lacked something would fail whatever the fault. */
const COPIED = 'src test bench dist docs scripts package.json tsconfig.json README.md'.split(' ')
/** Faults in what the browser gets need a bundle; other files of dist/ are made one by one. */
const BUNDLES: readonly (readonly [folder: string, script: string])[] = [
  ['widget/', 'build:widget'],
  ['dashboard/page/', 'build:dashboard'],
]

const HELP = `npm run test:faults -- [options]

Needs a build (npm run -s build) and what npm test needs.

  --only TEXT  the faults whose line contains TEXT
  --help       this text
`

const { values } = parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean' } } })
if (values.help) process.stdout.write(HELP)
else process.exitCode = await main(faults().filter(({ line }) => line.includes(values.only ?? '')))

async function main(chosen: readonly Fault[]): Promise<number> {
  const unnoticed: Fault[] = []
  const queue = [...chosen]
  let done = 0
  const work = async () => {
    const copy = copyOfTree()
    try {
      for (let fault = queue.shift(); fault !== undefined; fault = queue.shift()) {
        const by = await noticedBy(fault, copy)
        if (by === undefined) unnoticed.push(fault)
        const how =
          by ?? (fault.survives === undefined ? 'NOBODY' : `nobody, as explained: ${fault.survives}`)
        process.stdout.write(
          `${++done} of ${chosen.length}: ${fault.file}: ${fault.text} -> ${fault.faulty}: ${how}\n`,
        )
      }
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  const unexplained = unnoticed.filter(({ survives }) => survives === undefined)
  process.stdout.write(
    `${chosen.length - unnoticed.length} of ${chosen.length} faults noticed, ${unexplained.length} of the others unexplained\n`,
  )
  return unexplained.length === 0 ? 0 : 1
}

function copyOfTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'powgate-faults-'))
  const filter = (path: string) => !path.endsWith('/node_modules')
  for (const name of COPIED) cpSync(join(ROOT, name), join(copy, name), { recursive: true, filter })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** The first test that fails with the fault; undefined if all pass. */
async function noticedBy(fault: Fault, copy: string): Promise<string | undefined> {
  const path = join(copy, 'src', fault.file)
  const right = readFileSync(path, 'utf8')
  try {
    writeFileSync(
      path,
      right.replace(fault.text, () => fault.faulty),
    )
    if (!(await build(fault.file, copy))) return 'the build'
    for (const test of fault.tests) if (!(await passes(test, copy))) return test
    return undefined
  } finally {
    writeFileSync(path, right)
    await build(fault.file, copy)
  }
}

/** Brings dist/ up to date. Types are not checked: a fault is to be noticed by a test. */
async function build(file: string, copy: string): Promise<boolean> {
  const bundle = BUNDLES.find(([folder]) => file.startsWith(folder))
  if (bundle !== undefined) return runs('npm', ['run', '-s', bundle[1]], copy, {})
  const [from, to] = [join(copy, 'src', file), join(copy, 'dist', file)]
  if (!file.endsWith('.ts')) copyFileSync(from, to)
  else {
    const code = execFileSync(join(ROOT, 'node_modules/.bin/esbuild'), [
      from,
      '--format=esm',
      '--target=es2023',
    ])
    writeFileSync(
      to.replace(/ts$/, 'js'),
      code.toString().replace(/(from |import\(|import )"(\.[^"]+)\.ts"/g, '$1"$2.js"'),
    )
  }
  return true
}

function passes(test: string, copy: string): Promise<boolean> {
  const [file, section] = test.startsWith('contract:') ? ['contract/contract.test.ts', test.slice(9)] : [test]
  const env = { TEST_ENGINES: 'redis', ...(section === undefined ? {} : { TEST_SECTION: section }) }
  return runs('node', ['--import', 'tsx', '--test-reporter=tap', join('test', file)], copy, env)
}

function runs(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  return new Promise(resolve => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: 'ignore',
      timeout: TEST_MS_MAX,
      killSignal: 'SIGKILL', // on SIGTERM playwright-core closes its browsers and goes on
    })
    child.once('exit', code => resolve(code === 0))
  })
}
