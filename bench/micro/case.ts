/** The type of a case: one step of the service, and other ways to do the same work. */

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
   * @returns whether its result is right: a result that is looked at cannot be optimised away
   */
  readonly step: (index: number) => boolean
}

export interface AsyncWork extends Inputs {
  readonly kind: 'async'
  readonly step: (index: number) => Promise<boolean>
}

/** Makes the inputs, outside of the timing, in the process that will measure. */
export type Prepare = () => Work | Promise<Work>

export interface Way {
  /** Unique in its case. */
  readonly label: string
  /** What it does besides, and what it does not do. */
  readonly note: string
  /** Whether it needs a package that is no dependency of the project. */
  readonly isPackage?: true
  readonly prepare: Prepare
}

export interface Case {
  /** Unique; `--filter` looks for a part of it. */
  readonly name: string
  readonly prepare: Prepare
  readonly others?: readonly Way[]
}

/** Ours is the first. */
export function waysOf({ prepare, others = [] }: Case, hasPackages: boolean): Way[] {
  return [
    { label: 'powgate', note: '', prepare },
    ...others.filter(({ isPackage }) => hasPackages || !isPackage),
  ]
}

/** The same by node:crypto and the language alone, as most services of this kind do it. */
export function plain(note: string, prepare: Prepare): readonly Way[] {
  return [{ label: 'plain', note, prepare }]
}

export function over<Input>(inputs: readonly Input[], isRight: (input: Input) => boolean): SyncWork {
  return { kind: 'sync', count: inputs.length, step: index => isRight(inputs[index]!) }
}

/** Looks at a text as whoever sends it would: one that was put together from pieces becomes one piece. */
export function isText(text: string): boolean {
  return text.length > 0 && text.charCodeAt(text.length - 1) > 0
}
