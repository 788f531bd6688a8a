/** Runs shortened versions of the other benches if no files with their figures are given. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, THIS_TREE } from '../compare/tree.ts'
import type { Source } from './options.ts'

interface BenchRun {
  readonly script: string
  readonly args: readonly string[]
  /** Prints its figures; the other writes them to the file that follows its arguments. */
  readonly prints: boolean
  /** Without it there is nothing to compute. */
  readonly isNeeded: boolean
}

const RUNS: Readonly<Partial<Record<Source, BenchRun>>> = {
  http: { script: 'http', args: ['--repeat', '5', '--seconds', '1', '--json'], prints: true, isNeeded: true },
  store: {
    script: 'store',
    args: ['--store', 'redis', '--only', 'memory', '--max-addresses', '100000', '--json'],
    prints: true,
    isNeeded: false,
  },
  solver: { script: 'solver', args: ['--filter', 'WASM SIMD', '--json'], prints: false, isNeeded: false },
}

/** What was measured, as files in a folder that is removed at the end. */
export interface OwnRuns {
  readonly files: Readonly<Partial<Record<Source, string>>>
  remove(): void
}

export async function runBenches(signal: AbortSignal, tell: (line: string) => void): Promise<OwnRuns> {
  const folder = mkdtempSync(join(tmpdir(), 'powgate-capacity-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    tell('building')
    await build(THIS_TREE, signal)
    const files: Partial<Record<Source, string>> = {}
    for (const [source, run] of Object.entries(RUNS) as [Source, BenchRun][]) {
      const file = join(folder, `${source}.json`)
      tell(`bench/${run.script}: ${run.args.join(' ')}`)
      const problem = await runBench(run, file, signal)
      signal.throwIfAborted()
      if (problem === undefined) files[source] = file
      else if (run.isNeeded) throw new Error(problem)
      else tell(`${problem}: left out`)
    }
    return { files, remove }
  } catch (error) {
    remove()
    throw error
  }
}

/** @returns what went wrong, or undefined */
async function runBench(
  { script, args, prints }: BenchRun,
  file: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const path = fileURLToPath(new URL(`../${script}/main.ts`, import.meta.url))
  if (!existsSync(path)) return `there is no bench/${script}`
  const command = ['--import', 'tsx', path, ...args, ...(prints ? [] : [file])]
  const child = spawn(process.execPath, command, { cwd: THIS_TREE, stdio: ['ignore', 'pipe', 'inherit'] })
  const end = () => child.kill('SIGTERM')
  signal.addEventListener('abort', end, { once: true })
  const [text, code] = await Promise.all([textOf(child), once(child, 'close').then(([code]) => code)])
  signal.removeEventListener('abort', end)
  if (code !== 0) return `bench/${script} ended with ${code}`
  if (prints) writeFileSync(file, text)
  return undefined
}

async function textOf(child: ChildProcess): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of child.stdout!) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
