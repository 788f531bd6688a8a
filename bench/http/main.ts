/** `npm run bench:http`: see options.ts for what it does and takes. */

import { existsSync } from 'node:fs'
import { Bench } from './cases.ts'
import { LoadProcess } from './load-process.ts'
import { HELP, type Options, parseOptions, UsageError } from './options.ts'
import { jsonText, progressLine, reportCases, tableText } from './report.ts'

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2))
  if (options === undefined) {
    process.stdout.write(`${HELP}\n`)
    return 0
  }
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  return await bench(options)
}

async function bench(options: Options): Promise<number> {
  const load = new LoadProcess()
  const bench = new Bench(options, load, run => process.stderr.write(`${progressLine(run)}\n`))
  const stop = async () => {
    load.stop()
    await bench.stop()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)))
  }
  try {
    const cases = reportCases(await bench.runAll())
    process.stdout.write(`${options.isJson ? jsonText(cases, options) : tableText(cases, options)}\n`)
    return cases.every(({ isOk }) => isOk) ? 0 : 1
  } finally {
    await stop()
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  const isUsage = error instanceof UsageError
  process.stderr.write(`${isUsage ? error.message : (error as Error).stack}\n`)
  process.exitCode = isUsage ? 2 : 1
}
