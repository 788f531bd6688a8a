/** The type of a case: one step of the service, and alternatives that do the same work. */

/** One way to do a step, ready to run over its inputs. */
export type Work = SyncWork | AsyncWork

interface Inputs {
  /** How many inputs there are; one pass of a measurement runs over all of them, so each counts the same. */
  readonly count: number
  /** Puts back what a pass uses up, such as challenges that are redeemed. Called before each pass, outside of the timing. */
  readonly rewind?: () => void
}

export interface SyncWork extends Inputs {
  readonly kind: 'sync'
  /**
   * Runs the step on one input.
   *
   * @returns 1 if its result is right, else 0: a result that is looked at cannot be optimised away
   */
  readonly step: (index: number) => number
}

export interface AsyncWork extends Inputs {
  readonly kind: 'async'
  readonly step: (index: number) => Promise<number>
}

/** Makes the inputs, outside of the timing, in the process that will measure. */
export type Prepare = () => Work | Promise<Work>

export interface Peer {
  /** The package and what is asked of it. */
  readonly label: string
  /** What it does besides, and what it does not do. */
  readonly note: string
  readonly step: Prepare
}

export interface Case {
  /** Unique; `--filter` looks for a part of it. */
  readonly name: string
  /** The part of src/ it belongs to. */
  readonly area: string
  /** The module, from the root of the project. */
  readonly source: string
  readonly step: Prepare
  /** The same by node:crypto and the language alone, as most services of this kind do it. */
  readonly naive?: Prepare
  /** What that way is, and what it leaves out. */
  readonly naiveNote?: string
  readonly peers?: readonly Peer[]
}

/** `ours`, `naive`, or the index of a peer as text. */
export type Variant = string

export function variantsOf({ naive, peers = [] }: Case, hasPeers: boolean): Variant[] {
  return [
    'ours',
    ...(naive === undefined ? [] : ['naive']),
    ...(hasPeers ? peers.map((_, index) => String(index)) : []),
  ]
}

export function prepareOf({ name, step, naive, peers = [] }: Case, variant: Variant): Prepare {
  const prepare = variant === 'ours' ? step : variant === 'naive' ? naive : peers[Number(variant)]?.step
  if (prepare === undefined) throw new RangeError(`${name} has no variant ${variant}`)
  return prepare
}

/**
 * Looks at a text as whoever sends it would: one that was put together from pieces becomes one piece.
 *
 * @returns 1 unless it is empty
 */
export function isText(text: string): number {
  return text.length > 0 && text.charCodeAt(text.length - 1) > 0 ? 1 : 0
}
