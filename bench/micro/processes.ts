/** Compiles the bench and the modules of a tree with the service's compiler options, and measures in fresh processes. */

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { leftovers, OrderProcess } from '../../test/harness/processes.ts'
import type { Figures, MeasureOrder, Problem, StepOf } from './child.ts'
import { MODULES } from './steps.ts'

export const THIS_TREE = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const TSC = join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc')

export class Processes {
  readonly #folders: string[] = []
  readonly #bench: string
  #child: OrderProcess<MeasureOrder> | undefined

  constructor() {
    leftovers.add(this)
    this.#bench = this.#compiled(THIS_TREE, ['bench/micro/child.ts'])
  }

  /** @returns the folder of the compiled modules of a tree, those that it has */
  compileTree(root: string): string {
    const paths = MODULES.map(name => `src/${name}.ts`).filter(path => existsSync(join(root, path)))
    return this.#compiled(root, paths)
  }

  /** The figures of each step, taken in turn in one fresh process; rejects if it ends. */
  async measure(steps: readonly StepOf[], milliseconds: number): Promise<(Figures | Problem)[]> {
    const { NODE_OPTIONS: _, ...env } = process.env // they might load something into what is measured
    const child = new OrderProcess<MeasureOrder>(join(this.#bench, 'bench/micro/child.js'), [], {
      execArgv: ['--expose-gc'],
      env,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child = child
    try {
      return await child.ask({ steps, milliseconds })
    } finally {
      await child.stop()
    }
  }

  /** Ends the measurement that is under way and removes what was compiled. */
  async stop(): Promise<void> {
    leftovers.delete(this)
    this.#child?.kill()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }

  /** The output lies inside the tree, so that Node.js finds the tree's packages in a folder above it. Git ignores it. */
  #compiled(root: string, files: readonly string[]): string {
    const dist = join(root, 'bench/dist')
    mkdirSync(dist, { recursive: true })
    const folder = mkdtempSync(join(dist, `steps-${process.pid}-`))
    this.#folders.push(folder)
    const emitting = { noEmit: false, noCheck: true, allowImportingTsExtensions: false }
    const compilerOptions = { ...emitting, rootDir: root, outDir: folder }
    const inputs = { files: files.map(path => join(root, path)), include: [] }
    const config = join(folder, 'tsconfig.json')
    const project = { extends: join(root, 'tsconfig.json'), ...inputs, compilerOptions }
    writeFileSync(config, JSON.stringify(project))
    // The imports of the measured modules, as package.json names them (`#typebox` in older trees): the nearest manifest above, bench's, has none.
    const manifest = { type: 'module', imports: { '#typebox': 'typebox', '#hashwx': './hashwx.js' } }
    // A tree from before HashWX has none, and needs none. It is never another tree's, which would be measured in both.
    const hashwx = join(root, 'dist/hashwx.js')
    if (existsSync(hashwx)) copyFileSync(hashwx, join(folder, 'hashwx.js'))
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    const tsc = spawnSync(process.execPath, [TSC, '-p', config], { encoding: 'utf8' })
    if (tsc.status !== 0) {
      void this.stop()
      throw new Error(`tsc failed: ${tsc.error?.message ?? tsc.stdout + tsc.stderr}`)
    }
    return folder
  }
}
