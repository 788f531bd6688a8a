import { type Verdict, verdictOf } from './report.ts'
import { Run, type RunOptions, type TortureCase } from './run.ts'

/** Runs one case to its end; what it throws is a problem like others. */
export async function runCase(one: TortureCase, options: RunOptions): Promise<Verdict> {
  const run = new Run(options)
  const startedAtMs = performance.now()
  try {
    await one.run(run)
  } catch (error) {
    run.check(false, (error as Error).stack ?? String(error))
  }
  await run.end()
  return verdictOf(one, run, performance.now() - startedAtMs, options.seconds)
}
