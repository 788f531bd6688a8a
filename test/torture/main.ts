/** `npm run torture`: options.ts says what it does, and lists its options. */

import { accessSync, constants, existsSync, mkdirSync } from 'node:fs'
import { UsageError } from '../../bench/support/arguments.ts'
import { help, parseOptions } from './options.ts'
import { verdictText } from './report.ts'
import { runCase } from './run-case.ts'

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2))
  if (options === undefined) {
    process.stdout.write(`${help()}\n`)
    return 0
  }
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  const { seed, seconds, historyDir, isJson, repeat } = options
  if (historyDir !== undefined) makeWritable(historyDir)
  process.stderr.write(`seed ${seed}\n`)
  let isStopped = false
  const stopped = signalled().finally(() => {
    isStopped = true
  })
  stopped.catch(() => {})
  const broken: number[] = []
  for (const one of options.cases) {
    if (isStopped) break
    const onProgress = (text: string) => process.stderr.write(`${one.number} ${one.name}: ${text}\n`)
    const verdict = await runCase(one, { seed, seconds, historyDir, repeat, onProgress }, stopped)
    process.stdout.write(`${isJson ? JSON.stringify(verdict) : verdictText(verdict)}\n`)
    if (!verdict.holds) broken.push(one.number)
  }
  if (isStopped) return 1
  const held = options.cases.length - broken.length
  process.stderr.write(
    `${held} of ${options.cases.length} cases hold${broken.length > 0 ? `; broken: ${broken}` : ''}\n`,
  )
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

try {
  process.exitCode = await main()
} catch (error) {
  const { name, message, stack } = error as Error
  const isUsage = name === 'UsageError'
  process.stderr.write(`${isUsage ? message : stack}\n`)
  process.exitCode = isUsage ? 2 : 1
}
// Everything that was started has ended; timers of a client library are not awaited.
process.exit()
