/** Runs the measurements one after the other, each in a process of its own. */

import { type Case, type Variant, variantsOf } from './case.ts'
import type { Figures } from './child.ts'
import type { Options } from './options.ts'

export interface Run {
  readonly case: Case
  /** By variant; one element for each round, so that figures of one round can be compared. */
  readonly figures: ReadonlyMap<Variant, readonly Figures[]>
}

export type Measure = (name: string, variant: Variant, milliseconds: number) => Promise<Figures>

/**
 * In rounds, and in a round all ways to do a step in turn, so that whatever else the machine does befalls them alike.
 */
export async function measureAll(
  options: Pick<Options, 'cases' | 'repeat' | 'milliseconds' | 'hasPeers'>,
  measure: Measure,
  tell: (line: string) => void,
): Promise<Run[]> {
  const { cases, repeat, milliseconds, hasPeers } = options
  const runs = cases.map(one => ({
    case: one,
    figures: new Map(variantsOf(one, hasPeers).map((variant): [Variant, Figures[]] => [variant, []])),
  }))
  for (let round = 1; round <= repeat; round++) {
    for (const { case: one, figures } of runs) {
      for (const [variant, list] of figures) list.push(await measure(one.name, variant, milliseconds))
      tell(`round ${round} of ${repeat}: ${one.name}`)
    }
  }
  return runs
}
