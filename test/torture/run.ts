/** What a case of the torture suite receives, and what it records. */

import { join } from 'node:path'
import { SETTINGS } from '../../src/config/settings.ts'
import { type StoreKind, TestService } from '../harness/service.ts'
import { History } from './history.ts'
import { Random } from './random.ts'

export interface TortureCase {
  readonly number: number
  /** Accepted by `--only`, like the number. */
  readonly name: string
  /** What the case asserts. */
  readonly aim: string
  /** What the full run does, in words. */
  readonly fullSize: string
  run(run: Run): Promise<void>
}

export interface RunOptions {
  readonly seed: number
  /** Time limit of the case; undefined: the full size. */
  readonly seconds: number | undefined
  /** How often a full run repeats its measurements, in cases that repeat them; undefined: once. */
  readonly repeat?: number
  /** Where histories are written; undefined: nowhere. */
  readonly historyDir: string | undefined
  readonly onProgress: (text: string) => void
}

/** A measured value. */
export interface Figure {
  readonly name: string
  readonly value: string
}

const PROBLEMS_MAX = 5000
/** The service's log message for an exception during a request. */
const FAULT = 'a request ran into a fault'

export class Run {
  readonly seed: number
  readonly random: Random
  /** What was done, for example "10,000 tokens x 64 on redis". */
  readonly sizes: string[] = []
  readonly figures: Figure[] = []
  /** Assertions that failed. */
  readonly problems: string[] = []
  readonly #options: RunOptions
  readonly #startedAtMs = performance.now()
  readonly #endings: (() => unknown)[] = []
  #hasEnded = false
  readonly #histories: History[] = []
  readonly #services: TestService[] = []
  #moreProblems = 0

  constructor(options: RunOptions) {
    this.#options = options
    this.seed = options.seed
    this.random = new Random(options.seed)
  }

  /** Whether the run has no time limit: only then times are judged, on a machine that does nothing else. */
  get isFull(): boolean {
    return this.#options.seconds === undefined
  }

  /** How often a case repeats a measurement of which it reports medians. */
  get repetitions(): number {
    return this.isFull ? (this.#options.repeat ?? 1) : 1
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
    return seconds !== undefined && performance.now() - this.#startedAtMs > seconds * share * 1000
  }

  progress(text: string): void {
    this.#options.onProgress(text)
  }

  size(text: string): void {
    this.sizes.push(text)
    this.progress(text)
  }

  figure(name: string, value: number | string): void {
    this.figures.push({ name, value: typeof value === 'number' ? shortened(value) : value })
    this.progress(`${name}: ${this.figures.at(-1)!.value}`)
  }

  /** Records a failed assertion and goes on, so that one run reports all of them. */
  check(holds: boolean, problem: string | (() => string)): void {
    if (holds) return
    if (this.problems.length >= PROBLEMS_MAX) {
      this.#moreProblems++
      return
    }
    const text = typeof problem === 'string' ? problem : problem()
    this.problems.push(text)
    this.progress(`BROKEN: ${text}`)
  }

  /** A time, or a ratio of times: reported in any run, judged in a full one. */
  checkTime(name: string, value: number, max: number, unit = 'ms'): void {
    this.figure(name, `${shortened(value)} ${unit} (aim: at most ${max} ${unit})`.replace(/ +/g, ' '))
    if (this.isFull)
      this.check(value <= max, `${name}: ${shortened(value)} ${unit}, more than ${max} ${unit}`)
  }

  history(name: string): History {
    const history = new History(name)
    this.#histories.push(history)
    return history
  }

  /** Starts a service, which is stopped when the case has ended. */
  async service(kind: StoreKind, env: Record<string, string> = {}): Promise<TestService> {
    const service = await TestService.start(kind, env)
    this.#services.push(service)
    this.defer(() => service.stop())
    return service
  }

  /** Registers a function that runs when the case has ended, however it ends; the last one runs first. */
  defer(ending: () => unknown): void {
    this.#endings.push(ending)
    // A stopped case may still start something.
    if (this.#hasEnded) void this.#putAway()
  }

  async end(): Promise<void> {
    // Whatever is broken, 503 is the only 5xx that is right.
    for (const { name, calls } of this.#histories) {
      const fault = calls.find(({ status }) => status >= 500 && status !== 503)
      this.check(fault === undefined, () => `${name}: ${JSON.stringify(fault)}`)
    }
    if (this.#moreProblems > 0) this.problems.push(`and ${this.#moreProblems} more`)
    this.#hasEnded = true
    await this.#putAway()
    // Faults are answered with 503 too, which may also mean that the store is away.
    for (const { output } of this.#services) {
      const at = output.indexOf(FAULT)
      if (at >= 0)
        this.problems.push(`a fault of the service: ${output.slice(Math.max(0, at - 300), at + 1500)}`)
    }
    const { historyDir } = this.#options
    if (historyDir === undefined) return
    try {
      for (const history of this.#histories) await history.save(join(historyDir, `${history.name}.jsonl`))
    } catch (error) {
      this.problems.push(`the histories could not be written: ${(error as Error).message}`)
    }
  }

  async #putAway(): Promise<void> {
    for (const ending of this.#endings.splice(0).reverse()) {
      try {
        await ending()
      } catch (error) {
        this.problems.push(`while it was put away: ${(error as Error).message}`)
      }
    }
  }
}

/** The service sheds load as shipped; the services of the tests do not. */
export const SHEDS_AS_SHIPPED = { POWGATE_OVERLOAD_MS: SETTINGS.POWGATE_OVERLOAD_MS.fallback } as const

function shortened(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString('en-US')
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}
