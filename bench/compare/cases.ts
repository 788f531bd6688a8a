/** The cases that are compared, and how their pairs are measured. */

export type Side = 'old' | 'new'

/** A cost of one thing, measured in pairs; less is better. */
export interface Case {
  readonly part: 'http' | 'micro'
  readonly name: string
  readonly unit: 'us' | 'ns'
  /** The nth of each were measured beside each other. */
  readonly olds: readonly number[]
  readonly news: readonly number[]
  /** Why there is nothing to compare, and on whose side. */
  readonly problem?: { readonly side: Side; readonly text: string }
}

/**
 * Both sides of one pair, moments apart. Which goes first alternates, so that a machine that gets faster or slower
 * all the time favours neither.
 */
export async function measurePair<Value>(
  pair: number,
  measure: (side: Side) => Promise<Value>,
): Promise<{ readonly old: Value; readonly new: Value }> {
  if (pair % 2 === 0) {
    const old = await measure('old')
    return { old, new: await measure('new') }
  }
  const value = await measure('new')
  return { old: await measure('old'), new: value }
}

/** A failure of one side, which ends a case but not the bench. */
export class SideError extends Error {
  readonly side: Side

  constructor(side: Side, { message }: Error) {
    super(message)
    this.side = side
  }
}
