/** Measures whether an operation costs more when more addresses are active. */

import type { StoreKind } from '../../test/harness/service.ts'
import { drive } from './drive.ts'
import type { FigureName, Run, Sample } from './figures.ts'
import { fillTypical } from './memory.ts'
import { withSubject } from './open-subject.ts'
import type { Options } from './options.ts'
import { besideOthers } from './subject.ts'
import { buildVisits, type Operation } from './traffic.ts'

/** Tokens are redeemed by callers and API keys, whose number does not grow with the visitors'. */
const GROWING: readonly Operation[] = ['challenge', 'verification']
const SIZES = [1000, 10_000, 100_000, 1_000_000] as const
/** Few addresses make short passes, which are measured on several stores. */
const ROUNDS_MAX = 10

/** What must not grow: CPU time, and the time for which the store can do nothing else. */
const COMPARED: Readonly<Record<StoreKind, { readonly cpu: FigureName; readonly time: FigureName }>> = {
  redis: { cpu: 'redisUs', time: 'scriptUs' },
  embedded: { cpu: 'clientUs', time: 'transactionUs' },
}

/** One repetition, each size on fresh stores. What is measured are the last of the addresses, which are new. */
export async function runGrowth(
  store: StoreKind,
  options: Options,
  tell: (line: string) => void,
): Promise<Run[]> {
  const runs: Run[] = []
  const fewest = new Map<Operation, Sample>()
  for (const addresses of SIZES.filter(size => size <= options.maxAddresses)) {
    const measured = Math.min(options.operations, addresses / 2)
    const rounds = Math.min(ROUNDS_MAX, Math.ceil(options.operations / measured))
    const samples: Record<string, Sample[]> = {}
    for (let round = 0; round < rounds; round++) {
      const ofRound = await runRound(store, addresses, measured, options.batch)
      for (const operation of GROWING) (samples[operation] ??= []).push(ofRound[operation]!)
    }
    for (const operation of GROWING) {
      const sample = meanOf(samples[operation]!)
      if (!fewest.has(operation)) fewest.set(operation, sample)
      const times = (name: FigureName) => sample[name]! / fewest.get(operation)![name]!
      const { cpu, time } = COMPARED[store]
      const compared = { cpuTimesFewest: times(cpu), timeTimesFewest: times(time) }
      const row = { part: 'growth', store, of: operation, batch: options.batch, addresses } as const
      runs.push({ row, sample: { ...sample, ...compared } })
    }
    tell(`growth, ${store}: ${addresses.toLocaleString('en')} addresses`)
  }
  return runs
}

function runRound(
  store: StoreKind,
  addresses: number,
  measured: number,
  batch: number,
): Promise<Partial<Record<Operation, Sample>>> {
  return withSubject(store, async subject => {
    await fillTypical(subject.store, 0, addresses - measured)
    const visits = buildVisits(subject.store, addresses - measured, measured)
    const samples: Partial<Record<Operation, Sample>> = {}
    for (const operation of GROWING) {
      samples[operation] = await besideOthers(subject, () => drive(subject.store, operation, visits, batch))
    }
    return samples
  })
}

/** Rounds are alike, so each figure is the mean over them. */
function meanOf(samples: readonly Sample[]): Sample {
  const names = Object.keys(samples[0]!) as FigureName[]
  const mean = (name: FigureName) => samples.reduce((sum, sample) => sum + sample[name]!, 0) / samples.length
  return Object.fromEntries(names.map(name => [name, mean(name)]))
}
