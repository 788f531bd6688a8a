/** Runs a bench as npm does. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const ROOT = new URL('../..', import.meta.url).pathname

/** @param name of the bench, or a folder for temporary files and then the name */
export function runBench(name: string | { readonly name: string; readonly tmp: string }, ...args: string[]) {
  const { name: bench, tmp } = typeof name === 'string' ? { name, tmp: undefined } : name
  const env = tmp === undefined ? process.env : { ...process.env, TMPDIR: tmp }
  const command = ['--import', 'tsx', 'bench/cli.ts', bench, ...args]
  return promisify(execFile)(process.execPath, command, { cwd: ROOT, env, timeout: 180_000 })
}
