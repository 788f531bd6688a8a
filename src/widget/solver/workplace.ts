/** Where a puzzle can be solved, and what opening such a place takes. */

import type { OnProgress, Puzzle, Solved } from './job.ts'

export type Mode = 'worker' | 'frame' | 'blob' | 'page'

export interface ModeSettings {
  /** Where the service's assets are, ending in a slash. */
  readonly base: string
  /**
   * The folder for scripts that run with the page's rights: the one this script came from, since the page trusts it already.
   * `endpoint` is only markup. undefined if unknown: then only `frame` and `worker-src` are left.
   */
  readonly codeBase: string | undefined
  /** A copy of the worker file on the page's own origin. */
  readonly workerSrc: string | undefined
  /** The only mode to use, apart from `page`, which is always the last resort. */
  readonly mode: Mode | undefined
}

/** An opened mode, in which one puzzle is solved. */
export interface Workplace {
  readonly mode: Mode
  solve(puzzle: Puzzle, onProgress: OnProgress, signal: AbortSignal): Promise<Solved>
  /** Ends everything that still runs. */
  close(): void
}
