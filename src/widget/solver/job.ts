/** What is said between a widget, its frame and its workers. */

/** From the pool to a worker: first `prepare`, while the challenge is on its way, then `solve`. */
export type WorkerOrder =
  | {
      readonly kind: 'prepare'
      /** The module of the best kernel that the browser takes; without it, plain JavaScript. */
      readonly kernel: ArrayBuffer | undefined
      /** Whether to look at the renderer and the time zone. One worker does, since a browser takes long to tell. */
      readonly looksAtRenderer: boolean
    }
  | {
      readonly kind: 'solve'
      readonly nonce: string
      readonly difficulty: number
      /** The first counter to try; the worker goes on upwards. */
      readonly start: number
    }

export type SolverKind = 'wasm' | 'script'

/** From a worker to the pool. */
export type WorkerReport =
  | { readonly kind: 'ready' }
  | ({ readonly kind: 'renderer' } & Traits)
  | { readonly kind: 'progress'; readonly tries: number }
  | { readonly kind: 'found'; readonly tries: number; readonly counter: number; readonly solver: SolverKind }

export interface Puzzle {
  readonly nonce: string
  readonly difficulty: number
}

export interface Solved extends Traits {
  readonly counter: number
  /** By all threads together, about: those that did not find it are taken to be as fast as the one that did. */
  readonly tries: number
  readonly threads: number
  readonly solver: SolverKind
}

/**
 * What takes a browser so long to tell that workers look at it, not the page. Either is undefined if it did not come in
 * time, or from a worker of an older version.
 */
export interface Traits {
  /** What draws WebGL, if the browser tells. */
  readonly renderer?: string | undefined
  readonly timeZone?: string | undefined
}

/** Hears of the tries so far, by all threads together, a few times a second. */
export type OnProgress = (tries: number) => void

/** From the widget to its frame. */
export interface FrameJob extends Puzzle {
  readonly powgate: 'solve'
}

/** From the frame to the widget. */
export type FrameReport =
  /** `loading` as soon as its script runs, `ready` once its workers do. */
  | { readonly powgate: 'loading' | 'ready' }
  | { readonly powgate: 'progress'; readonly tries: number }
  | { readonly powgate: 'solved'; readonly solved: Solved }
  | { readonly powgate: 'failed'; readonly message: string }
