/** Where a puzzle can be solved, and the messages between a widget and its workers. */

/**
 * What the site asks about the browser, by a header of its challenge: nothing, seven yes-or-no answers, or besides them a hash of
 * the device's properties.
 */
export type Signals = 'none' | 'flags' | 'all'

/** From the pool to a worker: first `prepare`, then `solve`. */
export type WorkerOrder =
  | {
      readonly kind: 'prepare'
      /** The module of the best kernel that the browser supports; without it, plain JavaScript. */
      readonly kernel: ArrayBuffer | undefined
      /** The challenge is here, and not on its way: there is no time to warm up. */
      readonly isLate: boolean
    }
  | {
      readonly kind: 'solve'
      readonly nonce: string
      readonly difficulty: number
      /** The first counter to try; the worker counts up from it. */
      readonly start: number
      /** Which traits to read first: `none` for all workers but one, because reading them is slow. */
      readonly signals: Signals
    }

export type SolverKind = 'wasm' | 'script' | 'gpu'

/** From a worker to the pool. */
export type WorkerReport =
  | { readonly kind: 'ready' }
  | ({ readonly kind: 'renderer' } & Traits)
  | { readonly kind: 'progress'; readonly tries: number }
  | { readonly kind: 'found'; readonly tries: number; readonly counter: number; readonly solver: SolverKind }
  /** From the frame: the worker could not be started. */
  | { readonly kind: 'failed'; readonly message: string }

/** From the frame, when its script runs. From the page to the frame, with a port: start a worker, and connect it to the port. */
export const START_WORKER = 'powgate-worker'

export interface Puzzle {
  readonly nonce: string
  readonly difficulty: number
}

/** A puzzle, and which traits of the browser go with its solution. */
export interface Task extends Puzzle {
  readonly signals: Signals
}

export interface Solved extends Traits {
  readonly counter: number
  /** Hashes by all threads together; an estimate, which assumes that the other threads are as fast as the one that found it. */
  tries: number
  /** Besides the GPU. */
  readonly threads: number
  readonly solver: SolverKind
}

/**
 * Traits that workers read, because reading them is slow and would block the page. Either is undefined if it did not arrive
 * in time, or came from a worker of an older version.
 */
export interface Traits {
  /** What draws WebGL, if the browser tells. */
  readonly renderer?: string | undefined
  readonly timeZone?: string | undefined
}

/** Called with the number of tries so far, by all threads together, a few times a second. */
export type OnProgress = (tries: number) => void

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
  /** The most to use. */
  readonly threads: number
  /** `off` for none; `software` for tests: also one in software, which is slower than the threads. */
  readonly gpu: string
}

/** An opened mode, in which one puzzle is solved. */
export interface Workplace {
  readonly mode: Mode
  /** @param gpuCounter resolves with a counter that the GPU found; it may never settle, and never rejects */
  solve(task: Task, onProgress: OnProgress, gpuCounter: Promise<number>): Promise<Solved>
  /** Ends everything that still runs. */
  close(): void
}
