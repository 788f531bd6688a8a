/** `npm run torture`: options.ts says what it does, and lists its options. */

import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { runTool, tell, tool, UsageError } from '../harness/command-line.ts'
import { ABOUT, details, OPTIONS, type Options, tortureOptions } from './options.ts'
import { runCase, verdictText } from './report.ts'

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function main(options: Options): Promise<number> {
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  const { seed, seconds, history: historyDir, json, repeat } = options
  if (historyDir !== undefined) makeWritable(historyDir)
  tell(`seed ${seed}`)
  let isStopped = false
  const stopped = signalled().finally(() => {
    isStopped = true
  })
  stopped.catch(() => {})
  const broken: number[] = []
  for (const one of options.cases) {
    if (isStopped) break
    const onProgress = (text: string) => tell(`${one.number} ${one.name}: ${text}`)
    const verdict = await runCase(one, { seed, seconds, historyDir, repeat, onProgress }, stopped)
    process.stdout.write(`${json ? JSON.stringify(verdict) : verdictText(verdict)}\n`)
    if (!verdict.holds) broken.push(one.number)
  }
  if (isStopped) return 1
  const held = options.cases.length - broken.length
  tell(`${held} of ${options.cases.length} cases hold${broken.length > 0 ? `; broken: ${broken}` : ''}`)
  return broken.length === 0 ? 0 : 1
}

/** Fails now, and not after hours, if the directory cannot be written. */
function makeWritable(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true })
    accessSync(dir, constants.W_OK)
  } catch (error) {
    throw new UsageError(`--history: ${(error as Error).message}`)
  }
}

/** Rejects at the first Ctrl-C, kill, or uncaught exception; a second one ends the process at once. */
function signalled(): Promise<never> {
  return new Promise((_, reject) => {
    process.once('uncaughtException', reject)
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        const error = new Error(`stopped by ${signal}`)
        error.stack = error.message // the stack says nothing useful
        reject(error)
      })
  })
}

const TORTURE = tool({
  name: 'torture',
  about: ABOUT,
  options: OPTIONS,
  example: '--only 9 --seconds 20',
  details: details(),
  run: async options => await main(tortureOptions(options)),
})
await runTool(TORTURE, process.argv.slice(2))
// Everything that was started has ended; timers of a client library are not awaited.
process.exit()
