/**
 * A job for the solvers, its result, and the messages between the widget (pool.ts) and its workers (../worker.ts):
 *
 *   worker -> widget   ready
 *   widget -> worker   prepare: the kernel, mostly before the challenge is there
 *   widget -> worker   solve: the challenge, and the counter to start from
 *   worker -> widget   renderer, if asked for it; progress, now and then; found
 */

import type { PuzzleName } from '../../protocol/proof.ts'
import type { Challenge } from '../../protocol/wire.ts'

/** What the site asks about the browser, by a header of the challenge: nothing, or the flags of ../signals.ts. */
export type Signals = 'none' | 'flags'

export interface PrepareOrder {
  readonly kind: 'prepare'
  /** The module of WebAssembly. If undefined, the solver is plain JavaScript. */
  readonly kernel: ArrayBuffer | undefined
  readonly puzzle: PuzzleName
  /** The address of hashwx-script.js, for workers of HashWX that may not compile. */
  readonly script: string | undefined
  /** True if the challenge is there already: then the worker does not warm up. */
  readonly isLate: boolean
}

/** Only one of several workers gets other signals than `none`, because reading the renderer is slow. */
export interface SolveOrder extends Pick<Job, 'nonce' | 'difficulty' | 'signals'> {
  readonly kind: 'solve'
  /** The first counter to try. */
  readonly start: number
}

export type SolverKind = 'wasm' | 'script' | 'gpu'

export type WorkerReport =
  /** A copy of the worker on the page's origin may be older than HashWX, and then solves SHA-256 alone. */
  | { readonly kind: 'ready'; readonly hasHashwx?: true }
  | { readonly kind: 'renderer'; readonly renderer: string | undefined }
  | { readonly kind: 'progress'; readonly tries: number }
  | { readonly kind: 'found'; readonly tries: number; readonly counter: number; readonly solver: SolverKind }
  /** Sent by the frame: the worker could not be started. */
  | { readonly kind: 'failed'; readonly message: string }

/** The page sends this to the frame with a port, and the frame starts a worker behind the port. */
export const START_WORKER = 'powgate-worker'
/** The page sends this to the port to end the worker. */
export const END_WORKER = 0
/** The time between two reports of a solver. */
export const PROGRESS_MS = 100

export interface Job extends Pick<Challenge, 'algorithm' | 'nonce' | 'difficulty'> {
  readonly signals: Signals
}

export interface Solved {
  readonly counter: number
  /** Hashes by all threads, as if each were as fast as the one that found the counter, and by the GPU. */
  readonly tries: number
  /** Threads, not counting the GPU. */
  readonly threads: number
  readonly solver: SolverKind
  /** Read in a worker, because it would block the page; undefined if it came too late. */
  readonly renderer: string | undefined
}

/** Called a few times a second. @param tries so far, by all threads */
export type OnProgress = (tries: number) => void

/** The places in which a puzzle is solved: see ../modes.ts. */
export type Mode = 'worker' | 'frame' | 'blob' | 'page'

/** Solves on the page's own thread. @throws the signal's reason */
export type SolvePage = (
  kernel: ArrayBuffer | undefined,
  job: Job,
  onProgress: OnProgress,
  gpuCounter: Promise<number>,
  signal: AbortSignal,
) => Promise<Solved>

/** A mode that works in this page, with its workers started, for one puzzle. */
export interface SolverSession {
  readonly mode: Mode
  /** @param gpuCounter found by the GPU meanwhile; may never settle, and never rejects */
  solve(job: Job, onProgress: OnProgress, gpuCounter: Promise<number>): Promise<Solved>
}
