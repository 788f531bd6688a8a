/** The report about a case and its outcome. */

import type { Run, TortureCase } from './run.ts'

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

export function verdictOf(
  { number, name, aim }: TortureCase,
  run: Run,
  tookMs: number,
  bound?: number,
): Verdict {
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
