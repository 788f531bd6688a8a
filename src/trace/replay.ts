/** Lets a policy decide once more what a trace holds (recorder.ts has its form), as if it had been the live policy. */

import { type Trial, trialDifficulty } from '../domain/difficulty.ts'
import { isSiteKey } from '../domain/site.ts'
import { type LevelRates, sourceOf } from '../domain/sources.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'
import { AdminError } from '../sites/sites.ts'
import { TRACE_FORMAT, type TraceHead } from './recorder.ts'

/** A worker's state, as far as its trace is read. */
interface Worker {
  readonly sites: Map<number, { readonly siteKey: string; readonly numbers: readonly number[] }>
  nowMs: number
}

const CHALLENGE_NUMBERS = 12
const LEVEL_NUMBERS = 4
/** More than any count, rate or time of a trace, and few enough that no sum of them overflows. */
const NUMBER_MAX = 1e12

/** Sums over any number of traces. */
export class Replay {
  readonly #trial: Trial
  challenges = 0
  accepted = 0
  failed = 0
  /** Mean hashes of the solutions, summed up: as recorded, and by the policy. */
  readonly hashes = { recorded: 0, replayed: 0 }
  /** Challenges by the policy's bits less those recorded. */
  readonly byDifference: Record<number, number> = {}
  /** Decisions that differ: Unix milliseconds, and bits. */
  readonly different: { time: number; siteKey: string; recorded: number; replayed: number }[] = []

  constructor(trial: Trial) {
    this.#trial = trial
  }

  /** @throws AdminError if the text of the file is no trace */
  read(path: string, text: string): void {
    // A last line that is cut off is left out: a worker may be writing it.
    const [first, ...lines] = text.split('\n').slice(0, -1)
    const worker: Worker = { sites: new Map(), nowMs: headOf(path, first).startedAtMs }
    for (const [index, line] of lines.entries()) {
      if (!this.#take(worker, line)) throw new AdminError(`${path}, line ${index + 2}: not a line of a trace`)
    }
  }

  #take(worker: Worker, line: string): boolean {
    const [kind = '', ...texts] = line.split(' ')
    const siteKey = kind === 's' ? (texts.shift() ?? '') : ''
    const numbers = texts.map(Number)
    if (!numbers.every(one => Math.abs(one) <= NUMBER_MAX)) return false
    switch (kind) {
      case 's':
        if (numbers.length !== 4 || !isSiteKey(siteKey) || !areBits(numbers[1], numbers[2])) return false
        worker.sites.set(numbers[0]!, { siteKey, numbers })
        return true
      case 'c':
        return this.#decide(worker, numbers)
      case 'a':
      case 'f':
        if (numbers.length !== 1) return false
        worker.nowMs += numbers[0]!
        this[kind === 'a' ? 'accepted' : 'failed']++
        return true
      default:
        return false
    }
  }

  #decide(worker: Worker, numbers: readonly number[]): boolean {
    const rest = numbers.length - CHALLENGE_NUMBERS
    const site = worker.sites.get(numbers[0]!)
    if (rest < 0 || rest % LEVEL_NUMBERS !== 0 || site === undefined) return false
    const [, since, base, addressChallenges, addressFailures, addressAccepted] = numbers as Eleven
    const [, , , , , , siteRate, siteRateUsual, siteGrowth, recent, usual] = numbers as Eleven
    const recorded = numbers.at(-1)!
    if (!areBits(base, recorded)) return false
    worker.nowMs += since
    const levels: LevelRates[] = []
    for (let at = CHALLENGE_NUMBERS - 1; at < numbers.length - 1; at += LEVEL_NUMBERS) {
      const [prefixBits, recent, usual, days] = numbers.slice(at, at + LEVEL_NUMBERS) as Four
      levels.push({ prefixBits, recent, usual, days })
    }
    const [, min, max, addressLimit] = site.numbers as Four
    const source = sourceOf({ levels, all: { recent, usual, days: 0 } }, this.#trial)
    const load = { siteRate, siteRateUsual, siteGrowth }
    const inputs = { addressChallenges, addressLimit, addressFailures, addressAccepted, source, ...load }
    const replayed = trialDifficulty(this.#trial, { base, min, max }, inputs)
    const more = replayed - recorded
    this.challenges++
    this.hashes.recorded += 2 ** recorded
    this.hashes.replayed += 2 ** replayed
    this.byDifference[more] = (this.byDifference[more] ?? 0) + 1
    if (more !== 0) this.different.push({ time: worker.nowMs, siteKey: site.siteKey, recorded, replayed })
    return true
  }
}

type Four = [number, number, number, number]
type Eleven = [...Four, ...Four, number, number, number]

function areBits(...numbers: (number | undefined)[]): boolean {
  return numbers.every(one => one !== undefined && one >= DIFFICULTY_MIN && one <= DIFFICULTY_MAX)
}

function headOf(path: string, line = ''): TraceHead {
  try {
    const head = JSON.parse(line) as TraceHead
    if (head.format === TRACE_FORMAT && Math.abs(head.startedAtMs) <= Date.now()) return head
  } catch {}
  throw new AdminError(`${path}: expected a file of POWGATE_TRACE_FILE, which starts with ${TRACE_FORMAT}`)
}
