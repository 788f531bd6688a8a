import { type Verdict, verdictOf } from './report.ts'
import { Run, type RunOptions, type TortureCase } from './run.ts'

const NEVER = new Promise<never>(() => {})

/**
 * Runs one case to its end; what it throws is a problem like others.
 * @param stopped rejects when it has to end before that; what it has started ends, what it has recorded is kept
 */
export async function runCase(
  one: TortureCase,
  options: RunOptions,
  stopped: Promise<never> = NEVER,
): Promise<Verdict> {
  const run = new Run(options)
  const startedAtMs = performance.now()
  try {
    await Promise.race([one.run(run), stopped])
  } catch (error) {
    run.check(false, (error as Error).stack ?? String(error))
  }
  await run.end()
  return verdictOf(one, run, performance.now() - startedAtMs, options.seconds)
}
