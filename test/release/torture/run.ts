/** What a case of the torture suite receives and records, and the verdict on it. */

import { SETTINGS } from '../../../src/config/settings.ts'
import { leftovers } from '../../harness/processes.ts'
import { Random } from '../../harness/random.ts'
import { type StartKind, TestService } from '../../harness/service.ts'
import { History } from './history.ts'

export interface TortureCase {
  readonly number: number
  /** Accepted by `--only`, like the number. */
  readonly name: string
  readonly aim: string
  readonly fullSize: string
  run(run: Run): Promise<void>
}

interface RunOptions {
  readonly seed: number
  /** Time limit of the case; undefined: the full size. */
  readonly seconds: number | undefined
  readonly onProgress: (text: string) => void
}

const PROBLEMS_MAX = 5000

class Records {
  /** What was done, for example "10,000 tokens x 64 on redis". */
  readonly sizes: string[] = []
  readonly figures: Record<string, string> = {}
  readonly problems: string[] = []
  readonly histories: History[] = []
  readonly services: TestService[] = []
  readonly endings: (() => unknown)[] = []
  readonly startedAtMs = performance.now()
}

export class Run {
  readonly random: Random
  readonly seed: number
  readonly #options: RunOptions
  readonly #records: Records
  readonly #prefix: string

  constructor(options: RunOptions, random = new Random(options.seed), records = new Records(), prefix = '') {
    this.random = random
    this.seed = options.seed
    this.#options = options
    this.#records = records
    this.#prefix = prefix
  }

  /** The same run, for a part of the case: its name precedes whatever the part reports. */
  part(name: string): Run {
    return new Run(this.#options, this.random, this.#records, `${this.#prefix}${name}: `)
  }

  /** Whether the run has no time limit: only then times are judged, on a machine that does nothing else. */
  get isFull(): boolean {
    return this.#options.seconds === undefined
  }

  /** The duration of something that takes `full` seconds in a full run. @param share of the case's time limit */
  seconds(full: number, share = 1): number {
    return Math.min(full, (this.#options.seconds ?? Number.POSITIVE_INFINITY) * share)
  }

  /** The number for a full run, or the one for a run with a time limit. */
  count(full: number, bounded: number): number {
    return this.isFull ? full : bounded
  }

  /** Whether a run with a time limit has used up this share of its time. */
  isOver(share = 1): boolean {
    const { seconds } = this.#options
    return seconds !== undefined && performance.now() - this.#records.startedAtMs > seconds * share * 1000
  }

  progress(text: string): void {
    this.#options.onProgress(`${this.#prefix}${text}`)
  }

  size(text: string): void {
    this.#records.sizes.push(`${this.#prefix}${text}`)
    this.progress(text)
  }

  figure(name: string, value: number | string): void {
    const text = typeof value === 'number' ? shortened(value) : value
    this.#records.figures[`${this.#prefix}${name}`] = text
    this.progress(`${name}: ${text}`)
  }

  /** Records a failed assertion and goes on, so that one run reports all of them. */
  check(holds: boolean, problem: string | (() => string)): void {
    const { problems } = this.#records
    if (holds || problems.length >= PROBLEMS_MAX) return
    const text = typeof problem === 'string' ? problem : problem()
    problems.push(`${this.#prefix}${text}`)
    this.progress(`BROKEN: ${text}`)
  }

  /** Checks that nothing of this kind was found; otherwise tells how much, and the first. */
  none(kind: string, found: readonly unknown[]): void {
    const first = () => (typeof found[0] === 'string' ? found[0] : JSON.stringify(found[0]))
    this.check(found.length === 0, () => `${kind}: ${found.length}, such as ${first()}`)
  }

  /** What other work on the machine makes worse, such as a time: reported in any run, judged in a full one. */
  checkMeasured(name: string, value: number, max: number, unit = 'ms'): void {
    this.figure(name, `${shortened(value)} ${unit} (aim: at most ${max} ${unit})`)
    if (this.isFull)
      this.check(value <= max, `${name}: ${shortened(value)} ${unit}, more than ${max} ${unit}`)
  }

  history(name: string): History {
    const history = new History(name)
    this.#records.histories.push(history)
    return history
  }

  /** Starts a service, which is stopped when the case has ended. */
  async service(kind: StartKind, env: Record<string, string> = {}): Promise<TestService> {
    const service = await TestService.start(kind, env)
    this.#records.services.push(service)
    this.defer(() => service.stop())
    return service
  }

  /** Registers a function that runs when the case has ended, however it ends; the last one runs first. */
  defer(ending: () => unknown): void {
    this.#records.endings.push(ending)
  }

  async #putAway(): Promise<void> {
    const { endings, problems } = this.#records
    for (const ending of endings.splice(0).reverse()) {
      try {
        await ending()
      } catch (error) {
        problems.push(`while it was put away: ${(error as Error).message}`)
      }
    }
  }

  /** Stops what was started, and looks for faults of the service. */
  async end(): Promise<Records> {
    const records = this.#records
    const { problems, histories, services } = records
    // Whatever is broken, 503 is the only 5xx that is right.
    for (const { name, calls } of histories) {
      const others = calls.filter(({ status }) => status >= 500 && status !== 503)
      this.none(`${name}: another 5xx`, others)
    }
    await this.#putAway()
    // Faults are answered with 503 too, which may also mean that the store is away.
    for (const { output } of services) {
      const at = output.indexOf('"event":"fault"') // of an exception that the code did not foresee
      if (at >= 0) problems.push(`a fault of the service: ${output.slice(Math.max(0, at - 300), at + 1500)}`)
    }
    return records
  }
}

/** The service sheds load as shipped; the services of the tests do not. */
export const SHEDS_AS_SHIPPED = { POWGATE_OVERLOAD_MS: SETTINGS.POWGATE_OVERLOAD_MS.fallback } as const

function shortened(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString('en-US')
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

/** Runs one case to its end; its exception is a problem. @returns the verdict, as `--json` prints it, with a command that repeats it */
export async function runCase(one: TortureCase, options: RunOptions) {
  const run = new Run(options)
  const startedAtMs = performance.now()
  const started = { stop: async () => void (await run.end()) }
  leftovers.add(started) // for a run that is stopped
  try {
    await one.run(run)
  } catch (error) {
    run.check(false, (error as Error).stack ?? String(error))
  }
  const { sizes, figures, problems } = await run.end()
  leftovers.delete(started)
  const { number, name, aim } = one
  const { seed } = options
  const seconds = Math.round((performance.now() - startedAtMs) / 100) / 10
  const bound = options.seconds === undefined ? '' : ` --seconds ${options.seconds}`
  const command = `npm run torture -- --only ${number}${bound} --seed ${seed}`
  return { number, name, aim, holds: problems.length === 0, seconds, sizes, figures, problems, seed, command }
}

export function verdictText(verdict: Awaited<ReturnType<typeof runCase>>): string {
  const { number, name, aim, holds, seconds, sizes, figures, problems, command } = verdict
  return [
    `${number} ${name}: ${holds ? 'holds' : 'BROKEN'} (${seconds} s)`,
    `  aim: ${aim}`,
    ...problems.map(problem => `  broken: ${problem}`),
    ...sizes.map(size => `  done: ${size}`),
    ...Object.entries(figures).map(([figure, value]) => `  ${figure}: ${value}`),
    ...(holds ? [] : [`  again: ${command}`]),
  ].join('\n')
}
