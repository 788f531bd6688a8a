/** How much memory the processes of a service keep, and whether it grows. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { childPids } from '../../harness/processes.ts'
import type { TestService } from '../../harness/service.ts'
import type { Run } from './run.ts'

/** A number of KiB in /proc/<pid>/status, as "VmRSS". Throws if the process has ended. */
export function kibOf(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const found = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]
  // A process that is not yet reaped has no such field.
  if (found === undefined) throw new Error(`it has no ${field}`)
  return Number(found)
}

/**
 * Collects the garbage of a service's processes, and tells what stays. A heap decides itself when it collects, also when
 * idle. That alone can turn a worker of 100 MiB into one of 150.
 */
export class KeptMemory {
  readonly #dir = mkdtempSync(join(tmpdir(), 'powgate-kept-'))
  /** Settings of the service. */
  readonly env = {
    NODE_OPTIONS: `--import="${new URL('collect-garbage.mjs', import.meta.url)}"`,
    KEPT_MEMORY_DIR: this.#dir,
  }

  constructor(run: Pick<Run, 'defer'>) {
    run.defer(() => rmSync(this.#dir, { recursive: true, force: true }))
  }

  /** Requests a garbage collection from each process; it runs as soon as the process is free. Ended processes are skipped. */
  collect(pids: readonly number[]): void {
    for (const pid of pids) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGUSR2')
  }

  /** @returns bytes of JavaScript objects, without those of buffers, after the last collection; undefined before the first */
  bytesOf(pid: number): number | undefined {
    const path = join(this.#dir, String(pid))
    // The file may be empty while it is being written.
    return (existsSync(path) && Number(readFileSync(path, 'latin1'))) || undefined
  }
}

interface Settled {
  readonly asItIs: readonly number[]
  readonly collected: readonly number[]
}

/** A second apart: pages go back to the system bit by bit. */
const COLLECTIONS = 15
const SETTLED_GROWTH_MAX = 1.05

/** Resident KiB of a service's processes while no requests come, before a load and after it. */
export class SettledMemory {
  readonly #kept: KeptMemory
  readonly #pids: readonly number[]
  readonly #settled: Settled[] = []

  constructor(kept: KeptMemory, { pid }: TestService) {
    this.#kept = kept
    this.#pids = [pid, ...childPids(pid)]
  }

  async settle(): Promise<void> {
    const asItIs = this.#pids.map(residentOf)
    let collected = asItIs
    for (let count = 0; count < COLLECTIONS; count++) {
      this.#kept.collect(this.#pids)
      await sleep(1000)
      collected = collected.map((kib, index) => Math.min(kib, residentOf(this.#pids[index]!)))
    }
    this.#settled.push({ asItIs, collected })
  }

  /** Compares the workers' memory with the first measurement. */
  async judge(run: Run): Promise<void> {
    await this.settle()
    const [before, after] = [this.#settled[0]!, this.#settled.at(-1)!]
    for (let worker = 1; worker < this.#pids.length; worker++) {
      const growth = after.collected[worker]! / before.collected[worker]!
      const name = `memory of worker ${worker - 1} without garbage, after against before`
      run.checkTime(name, growth, SETTLED_GROWTH_MAX, 'x')
    }
    for (const [name, of] of [
      ['with garbage', 'asItIs'],
      ['without', 'collected'],
    ] as const) {
      const texts = [before, after].map(settled => settled[of].map(mebibytes).join(' '))
      run.figure(`memory of primary and workers ${name}, MiB`, `${texts[0]} before, ${texts[1]} after`)
    }
  }
}

/** NaN if the process has ended, which is reported elsewhere. */
function residentOf(pid: number): number {
  try {
    const smaps = readFileSync(`/proc/${pid}/smaps`, 'latin1')
    const ofStore = [...smaps.matchAll(/\.mdb\n(?:[A-Z]\w+:.*\n)*?Rss:\s+(\d+) kB/g)]
    return kibOf(pid, 'VmRSS') - sum(ofStore.map(([, kib]) => Number(kib)))
  } catch {
    return Number.NaN
  }
}

/** A value at a time, in minutes. */
interface Sample {
  readonly at: number
  readonly value: number
}

/** Growth per unit of time; then half the width of its 95 % confidence interval. */
interface Slope {
  readonly perUnit: number
  readonly plusMinus: number
  /** The same if all stretches were independent: the uncertainty of the line through them, not of the growth. */
  readonly plusMinusOfLine: number
}

const STRETCHES = 20
const UNKNOWN = Number.POSITIVE_INFINITY
/** Student's t for 97.5 % by degrees of freedom, from 1 on; beyond the last it changes little. */
const STUDENT = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1,
]

/**
 * Whether values grow: least squares over the means of stretches. Neighbouring stretches often deviate in the same direction
 * (a heap fills for minutes until it is collected). So fewer of them are independent than there are: see Santer et al.,
 * Statistical significance of trends (2000), "adjusted standard error and degrees of freedom".
 *
 * @param samples in the order of their times
 */
export function slopeOf(samples: readonly Sample[]): Slope {
  const stretches = Math.min(STRETCHES, Math.floor(samples.length / 3))
  if (stretches < 3) return { perUnit: 0, plusMinus: UNKNOWN, plusMinusOfLine: UNKNOWN }
  const means = Array.from({ length: stretches }, (_, index) => {
    const [from, to] = [index, index + 1].map(edge => Math.floor((edge * samples.length) / stretches))
    const part = samples.slice(from, to)
    return { at: mean(part.map(({ at }) => at)), value: mean(part.map(({ value }) => value)) }
  })
  const [atMean, valueMean] = [mean(means.map(({ at }) => at)), mean(means.map(({ value }) => value))]
  const spread = sum(means.map(({ at }) => (at - atMean) ** 2))
  const perUnit = sum(means.map(({ at, value }) => (at - atMean) * (value - valueMean))) / spread
  const residues = means.map(({ at, value }) => value - valueMean - perUnit * (at - atMean))
  const rest = sum(residues.map(residue => residue ** 2))
  const halfWidth = (independent: number) => {
    const freedom = independent - 2
    if (freedom < 1) return UNKNOWN
    const student = STUDENT[Math.min(Math.floor(freedom), STUDENT.length) - 1]!
    return student * Math.sqrt(rest / freedom / spread)
  }
  const plusMinus = halfWidth(independentOf(residues, rest))
  return { perUnit, plusMinus, plusMinusOfLine: halfWidth(stretches) }
}

/** The number of independent stretches that would be worth as much as these. */
function independentOf(residues: readonly number[], rest: number): number {
  const products = residues.slice(1).map((residue, index) => residue * residues[index]!)
  const correlation = rest === 0 ? 0 : Math.max(0, sum(products) / rest)
  return (residues.length * (1 - correlation)) / (1 + correlation)
}

const SAMPLE_MS = 500
/**
 * Garbage in heaps varies by more than a leak would add in an hour, so heaps are collected before they are measured. At every
 * 5 s, the collector's threads alone make the allocator take 70 KiB a minute, also in an idle process. At every 15 s, some
 * thirty values of ten minutes are left to judge.
 */
const COLLECT_MS = 15_000
const COLLECT_MS_BOUNDED = 1000
/** Share of the first samples that is ignored: the store's set of keys grows to its size, and all changing sites are known. */
const SETTLING_SHARE = 0.2
/** With fewer samples their variation is unknown. */
const SAMPLES_MIN = 24
/** If residues form one long wave: greatest growth, as a share of the memory after the warm-up. */
const SMOOTH_GROWTH_MAX = 0.05
/** Growth of a worker's own memory for each request: a pointer. A leak of any object keeps more. */
const GROWTH_MAX_BYTES = 8
/** A slow machine makes fewer requests, but its memory varies as much. */
const GROWTH_MAX_KIB_MIN = 2048
/** Growth of JavaScript objects, which are measured exactly: 16 bytes, the least size of an object, for one request in 128. */
const LIVING_GROWTH_BYTES = 1 / 8
/** Growth of a process's JavaScript objects, a minute. */
const LIVING_GROWTH_MAX_KIB = 64
/** Growth of the primary process, a minute. */
const PRIMARY_GROWTH_MAX_KIB = 512
/**
 * Intended growth of the primary process, a minute: a step of its history every ten seconds, for half an hour; and compiled code,
 * for hours, because most of its functions run once a second. Two heap snapshots, four minutes apart: code 62 KiB more, its
 * lists 9, all other objects 1.
 */
const HISTORY_AND_CODE_KIB = 30

interface Sampled {
  readonly name: string
  readonly pid: number
  readonly resident: Sample[]
  /** Memory that belongs to no file. Buffers are included. */
  readonly own: Sample[]
  /** JavaScript objects without garbage, measured exactly to some KiB. */
  readonly living: Sample[]
}

/** The memory of a service's processes under a load, in KiB by minutes. */
export class MemoryUnderLoad {
  readonly #run: Run
  readonly #kept: KeptMemory
  readonly #processes: readonly Sampled[]
  readonly #stops: readonly (() => void)[]
  readonly #startMs = performance.now()

  constructor(run: Run, { pid }: TestService, kept: KeptMemory) {
    this.#run = run
    this.#kept = kept
    this.#processes = [pid, ...childPids(pid)].map((each, index) => {
      const name = index === 0 ? 'primary' : `worker ${index - 1}`
      return { name, pid: each, resident: [], own: [], living: [] }
    })
    this.#stops = [
      run.every(SAMPLE_MS, () => this.#sample()),
      run.every(run.count(COLLECT_MS, COLLECT_MS_BOUNDED), () => this.#sampleLiving()),
    ]
  }

  stop(): void {
    for (const stop of this.#stops) stop()
  }

  get #now(): number {
    return (performance.now() - this.#startMs) / 60_000
  }

  /** Reads the result of the last collection, and starts another one. */
  #sampleLiving(): void {
    for (const { pid, living } of this.#processes) {
      const bytes = this.#kept.bytesOf(pid)
      if (bytes !== undefined) living.push({ at: this.#now, value: bytes / 1024 })
    }
    this.#kept.collect(this.#processes.map(({ pid }) => pid))
  }

  #sample(): void {
    const at = this.#now
    for (const { name, pid, resident, own } of this.#processes) {
      try {
        resident.push({ at, value: kibOf(pid, 'VmRSS') })
        own.push({ at, value: kibOf(pid, 'RssAnon') })
      } catch (error) {
        this.stop()
        this.#run.check(false, `the ${name} has ended: ${(error as Error).message}`)
        return
      }
    }
  }

  /** Of the workers it judges the mean, which varies less than each. @param requests that all workers have answered */
  judge(requests: number): void {
    const run = this.#run
    for (const { name, resident } of this.#processes) {
      const from = resident[Math.floor(resident.length * SETTLING_SHARE)]?.value ?? 0
      const text = `${mebibytes(from)} MiB after the warm-up, ${mebibytes(resident.at(-1)?.value ?? 0)} at the end`
      run.figure(`resident memory of the ${name}`, text)
    }
    const [primary, ...workers] = this.#processes
    const own = meanOf(workers.map(worker => worker.own))
    const perMinute = requests / (own.at(-1)!.at - own[0]!.at) / workers.length
    run.figure('requests a minute and worker', Math.round(perMinute))
    judgeGrowth(run, "a worker's own memory", own, {
      meantKib: 0,
      maxKib: Math.max(GROWTH_MAX_KIB_MIN, (perMinute * GROWTH_MAX_BYTES) / 1024),
    })
    judgeGrowth(run, "a worker's living objects", meanOf(workers.map(worker => worker.living)), {
      meantKib: (perMinute * LIVING_GROWTH_BYTES) / 1024,
      maxKib: LIVING_GROWTH_MAX_KIB,
    })
    // Its history takes memory for half an hour, so growth is expected. The objects show how much of it stays.
    judgeGrowth(run, "the primary's own memory", primary!.own, {
      meantKib: PRIMARY_GROWTH_MAX_KIB,
      maxKib: PRIMARY_GROWTH_MAX_KIB,
    })
    judgeGrowth(run, "the primary's living objects", primary!.living, {
      meantKib: HISTORY_AND_CODE_KIB,
      maxKib: HISTORY_AND_CODE_KIB + LIVING_GROWTH_MAX_KIB,
    })
  }
}

/** The mean of several processes, sample by sample. */
function meanOf(processes: readonly (readonly Sample[])[]): Sample[] {
  const length = Math.min(...processes.map(samples => samples.length))
  return processes[0]!.slice(0, length).map(({ at }, index) => {
    return { at, value: mean(processes.map(samples => samples[index]!.value)) }
  })
}

/** Growth in KiB a minute: the intended part, or too little to be a leak; and the most for the line through the samples. */
interface Growth {
  readonly meantKib: number
  readonly maxKib: number
}

function judgeGrowth(run: Run, name: string, samples: readonly Sample[], { meantKib, maxKib }: Growth): void {
  const warm = samples.slice(Math.floor(samples.length * SETTLING_SHARE))
  const { perUnit, plusMinus, plusMinusOfLine } = slopeOf(warm)
  const text = `${perUnit.toFixed(0)} +- ${plusMinus.toFixed(0)} KiB/min`
  if (warm.length >= 9) run.figure(name, text)
  if (!run.isFull) return
  run.check(warm.length >= SAMPLES_MIN, `${name}: there are only ${warm.length} samples`)
  const unmeantKib = perUnit - meantKib
  if (Number.isFinite(plusMinus)) run.check(unmeantKib <= plusMinus, `${name} grows: ${text}`)
  else {
    // On a smooth curve, no line shows whether growth goes on. So, as in case 1, the share of the earlier memory is judged.
    const kib = unmeantKib * (warm.at(-1)!.at - warm[0]!.at)
    const mostKib = warm[0]!.value * SMOOTH_GROWTH_MAX
    run.check(kib <= mostKib, `${name} has grown by ${kib.toFixed(0)} KiB along a smooth curve`)
  }
  // If the values vary so much that growth would not show, the result is unknown.
  run.check(perUnit + plusMinusOfLine < maxKib, `${name} may grow, by ${maxKib.toFixed(0)} or more: ${text}`)
}

const mebibytes = (kib: number) => (kib / 1024).toFixed(0)
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]) => sum(values) / values.length
