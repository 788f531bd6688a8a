/** Lets a policy decide once more what a trace holds (recorder.ts has its form), as if it had been the live policy. */

import { readFileSync } from 'node:fs'
import { type Trial, trialDifficulty } from '../domain/difficulty.ts'
import { isOwnPseudonym, parsePseudonym } from '../domain/pseudonyms.ts'
import { SourceWatch } from '../domain/sources.ts'
import { AdminError } from '../sites/sites.ts'
import { TRACE_FORMAT, type TraceHead } from './recorder.ts'

/** A worker's state, as far as its trace is read. */
interface Worker {
  readonly sources: SourceWatch
  readonly sites: { readonly siteKey: string; readonly numbers: readonly number[] }[]
  nowMs: number
}

/** Numbers in a line of each kind, after its name or address. */
const NUMBERS: Readonly<Record<string, number>> = { s: 4, c: 8, a: 1, f: 1 }

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

  /** Each trace is of one worker, which has counts of its own. Throws AdminError if a file is no trace. */
  read(path: string): void {
    const [first, ...lines] = linesOf(path)
    const { workers, secret, startedAtMs } = headOf(path, first)
    const sources = new SourceWatch(workers, secret, isOwnPseudonym)
    const worker: Worker = { sources, sites: [], nowMs: startedAtMs }
    for (const [index, line] of lines.entries()) {
      if (!this.#take(worker, line)) throw new AdminError(`${path}, line ${index + 2}: not a line of a trace`)
    }
  }

  #take(worker: Worker, line: string): boolean {
    const [kind = '', name = '', ...texts] = line.split(' ')
    const numbers = texts.map(Number)
    if (numbers.length !== NUMBERS[kind] || !numbers.every(Number.isFinite)) return false
    if (kind === 's') {
      worker.sites[numbers[0]!] = { siteKey: name, numbers }
      return true
    }
    const address = parsePseudonym(name)
    if (address === undefined) return false
    if (kind === 'c') return this.#decide(worker, address, numbers)
    worker.nowMs += numbers[0]!
    if (kind === 'a') worker.sources.accepted(address, worker.nowMs)
    this[kind === 'a' ? 'accepted' : 'failed']++
    return true
  }

  #decide(worker: Worker, address: string, [index, since, ...numbers]: readonly number[]): boolean {
    const site = worker.sites[index!]
    if (site === undefined) return false
    worker.nowMs += since!
    const [base, addressChallenges, addressFailures, siteRate, siteRateUsual, recorded] = numbers as Six
    const [, min, max, addressLimit] = site.numbers as Four
    const source = worker.sources.of(address, worker.nowMs, this.#trial)
    const inputs = { addressChallenges, addressLimit, addressFailures, source, siteRate, siteRateUsual }
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
type Six = [...Four, number, number]

/** Without a last line that is cut off: a worker may be writing it. */
function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    throw new AdminError(`--trace: cannot read ${path}: ${(error as Error).message}`)
  }
}

function headOf(path: string, line = ''): TraceHead {
  if (line.includes(`"${TRACE_FORMAT}"`)) return JSON.parse(line)
  throw new AdminError(`${path}: expected a file of POWGATE_TRACE_FILE, which starts with ${TRACE_FORMAT}`)
}
