/**
 * Compiles the bench with the service's compiler options, and runs each measurement in a process of its own. tsx would distort:
 * its esbuild keeps the names of functions, which adds a call of Object.defineProperty to each function that makes a closure.
 */

import { type ChildProcess, fork, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { leftovers } from '../../test/harness/processes.ts'
import { type Case, waysOf } from './case.ts'
import type { Figures } from './child.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Inside the project, for packages are looked for in the folders above. Git ignores it. */
const DIST = join(ROOT, 'bench/dist')
const SOURCES = ['bench/micro/child.ts', 'bench/peer-modules.d.ts']

export class Processes {
  readonly #folder: string
  #child: ChildProcess | undefined

  constructor() {
    mkdirSync(DIST, { recursive: true })
    this.#folder = mkdtempSync(join(DIST, 'micro-'))
    leftovers.add(this)
    try {
      compile(this.#folder)
    } catch (error) {
      void this.stop()
      throw error
    }
  }

  /** Rejects with what the child printed if it fails. */
  async measure(name: string, label: string, milliseconds: number): Promise<Figures> {
    const { NODE_OPTIONS: _, ...env } = process.env
    const child = fork(join(this.#folder, 'bench/micro/child.js'), [name, label, String(milliseconds)], {
      execArgv: ['--expose-gc'],
      env,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    let printed = ''
    child.stderr!.on('data', chunk => {
      printed += chunk
    })
    let figures: Figures | undefined
    child.once('message', message => {
      figures = message as Figures
    })
    return await new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => {
        this.#child = undefined
        if (code === 0 && figures !== undefined) resolve(figures)
        else reject(new Error(`${name} (${label}) ended with ${code}: ${printed}`))
      })
    })
  }

  /** Ends the measurement that is under way and removes what was compiled. */
  async stop(): Promise<void> {
    leftovers.delete(this)
    this.#child?.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function compile(folder: string): void {
  const config = join(folder, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    noCheck: true,
    rootDir: ROOT,
    outDir: folder,
    allowImportingTsExtensions: false,
  }
  const files = SOURCES.map(path => join(ROOT, path))
  writeFileSync(
    config,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, files, include: [] }),
  )
  // The nearest one above is that of bench, which knows nothing of the imports of src.
  const manifest = { type: 'module', imports: { '#typebox': 'typebox' } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const typescript = createRequire(import.meta.url).resolve('typescript/package.json')
  const { status, error, stdout, stderr } = spawnSync(
    process.execPath,
    [join(typescript, '../bin/tsc'), '-p', config],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`tsc failed: ${error?.message ?? stdout + stderr}`)
}

export interface Run {
  readonly case: Case
  /** By the label of a way; one element for each round, so that figures of one round can be compared. */
  readonly figures: ReadonlyMap<string, readonly Figures[]>
}

export interface Sizes {
  readonly repeat: number
  readonly milliseconds: number
  readonly hasPackages: boolean
}

/** In rounds, and in a round all ways to do a step in turn, so that whatever else the machine does befalls them alike. */
export async function measureAll(
  cases: readonly Case[],
  { repeat, milliseconds, hasPackages }: Sizes,
  measure: (name: string, label: string, milliseconds: number) => Promise<Figures>,
  tell: (line: string) => void,
): Promise<Run[]> {
  const runs = cases.map(one => ({
    case: one,
    figures: new Map(waysOf(one, hasPackages).map(({ label }): [string, Figures[]] => [label, []])),
  }))
  for (let round = 1; round <= repeat; round++) {
    for (const { case: one, figures } of runs) {
      for (const [label, list] of figures) list.push(await measure(one.name, label, milliseconds))
      tell(`round ${round} of ${repeat}: ${one.name}`)
    }
  }
  return runs
}
