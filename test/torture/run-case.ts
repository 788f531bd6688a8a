import { type Verdict, verdictOf } from './report.ts'
import { Run, type RunOptions, type TortureCase } from './run.ts'

const NEVER = new Promise<never>(() => {})

/**
 * Runs one case to its end; an exception of the case is recorded as a problem.
 * @param stopped rejects when the case must end early; everything it started is then stopped, and its records are kept
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
