/** `npm run torture`: see options.ts for what it does and takes. */

import { existsSync } from 'node:fs'
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
  const { seed, seconds, historyDir, isJson } = options
  process.stderr.write(`seed ${seed}\n`)
  const broken: number[] = []
  for (const one of options.cases) {
    const onProgress = (text: string) => process.stderr.write(`${one.number} ${one.name}: ${text}\n`)
    const verdict = await runCase(one, { seed, seconds, historyDir, onProgress })
    process.stdout.write(`${isJson ? JSON.stringify(verdict) : verdictText(verdict)}\n`)
    if (!verdict.holds) broken.push(one.number)
  }
  const held = options.cases.length - broken.length
  process.stderr.write(
    `${held} of ${options.cases.length} cases hold${broken.length > 0 ? `; broken: ${broken}` : ''}\n`,
  )
  return broken.length === 0 ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  const { name, message, stack } = error as Error
  const isUsage = name === 'UsageError'
  process.stderr.write(`${isUsage ? message : stack}\n`)
  process.exitCode = isUsage ? 2 : 1
}
// What was started has ended; a timer of a client library need not be waited for.
process.exit()
