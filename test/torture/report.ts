/** Runs a case, and reports its outcome. */

import { Run, type RunOptions, type TortureCase } from './run.ts'

export interface Verdict {
  readonly number: number
  readonly name: string
  readonly aim: string
  readonly holds: boolean
  readonly seconds: number
  readonly sizes: readonly string[]
  readonly figures: Readonly<Record<string, string>>
  readonly problems: readonly string[]
  readonly seed: number
  /** Repeats the same run. */
  readonly command: string
}

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

function verdictOf({ number, name, aim }: TortureCase, run: Run, tookMs: number, bound?: number): Verdict {
  const seconds = bound === undefined ? '' : ` --seconds ${bound}`
  const repeat = run.repetitions === 1 ? '' : ` --repeat ${run.repetitions}`
  return {
    number,
    name,
    aim,
    holds: run.problems.length === 0,
    seconds: Math.round(tookMs / 100) / 10,
    sizes: run.sizes,
    figures: Object.fromEntries(run.figures.map(({ name: figure, value }) => [figure, value])),
    problems: run.problems,
    seed: run.seed,
    command: `npm run torture -- --only ${number}${seconds}${repeat} --seed ${run.seed}`,
  }
}

export function verdictText({
  number,
  name,
  aim,
  holds,
  seconds,
  sizes,
  figures,
  problems,
  command,
}: Verdict): string {
  return [
    `${number} ${name}: ${holds ? 'holds' : 'BROKEN'} (${seconds} s)`,
    `  aim: ${aim}`,
    ...problems.map(problem => `  broken: ${problem}`),
    ...sizes.map(size => `  done: ${size}`),
    ...Object.entries(figures).map(([figure, value]) => `  ${figure}: ${value}`),
    ...(holds ? [] : [`  again: ${command}`]),
  ].join('\n')
}
