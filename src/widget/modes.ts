/**
 * Where the solving is done. A strict page may allow little, and nothing lets a script ask what: an attempt that the
 * policy forbids is a violation report to the site's owner. So the ways that need the least are tried first:
 *
 *   worker  a worker file of the page's own origin (attribute `worker-src`, or the service itself if it is that origin)
 *   frame   an isolated frame of the service, which lives by the service's policy; the page must allow the frame
 *   blob    a worker made of a blob; the page must allow `blob:` workers, and 'wasm-unsafe-eval' for full speed
 *   page    the page's own thread, in short slices
 */

import { openFrame } from './solver/frame-host.ts'
import type { OnProgress, Puzzle, Solved } from './solver/job.ts'
import { fetchKernel } from './solver/kernel-file.ts'
import { WorkerPool } from './solver/pool.ts'
import { threadCount } from './solver/threads.ts'

export type Mode = 'worker' | 'frame' | 'blob' | 'page'

export interface ModeSettings {
  /** Where the service's assets are, ending in a slash. */
  readonly base: string
  /** A copy of the worker file on the page's own origin. */
  readonly workerSrc: string | undefined
  /** The only mode to use, apart from `page`, which is always the last resort. */
  readonly mode: Mode | undefined
}

/** A place to solve one puzzle in. */
export interface Workplace {
  readonly mode: Mode
  solve(puzzle: Puzzle, onProgress: OnProgress, signal: AbortSignal): Promise<Solved>
  /** Ends all that still runs. */
  close(): void
}

type Opener = (settings: ModeSettings) => Promise<Workplace>

const OPENERS: Readonly<Record<Mode, Opener>> = {
  worker: async ({ base, workerSrc }) =>
    openPool('worker', workerSrc ?? base + ASSET_NAMES['worker.js'], fetchKernel(base)),
  frame: openFrame,
  blob: async ({ base }) => {
    const kernel = fetchKernel(base)
    const response = await fetch(base + ASSET_NAMES['worker.js'])
    if (!response.ok) throw new Error(`worker: status ${response.status}`)
    const url = URL.createObjectURL(new Blob([await response.text()], { type: 'text/javascript' }))
    return openPool('blob', url, kernel).finally(() => URL.revokeObjectURL(url))
  },
  page: async settings => openPage(settings),
}

/** What worked last on this page: a renewal does not try again what is forbidden. */
let proven: Mode | undefined

/** @throws Error if even the page's own thread cannot be used, because its script could not be loaded */
export async function openWorkplace(settings: ModeSettings): Promise<Workplace> {
  for (const mode of modesFor(settings)) {
    try {
      const workplace = await OPENERS[mode](settings)
      proven = mode
      return workplace
    } catch (error) {
      // The integrator can see why it is not the mode that was expected; nothing is wrong for the visitor.
      console.info(`pow-gate: mode "${mode}" cannot be used here: ${error}`)
    }
  }
  const workplace = await OPENERS.page(settings)
  proven = 'page'
  return workplace
}

function modesFor({ base, workerSrc, mode }: ModeSettings): Mode[] {
  if (mode !== undefined) return mode === 'page' ? [] : [mode]
  if (proven === 'page') return []
  const isOwnOrigin = new URL(base).origin === location.origin
  const modes: Mode[] =
    workerSrc !== undefined || isOwnOrigin ? ['worker', 'frame', 'blob'] : ['frame', 'blob']
  return proven !== undefined && modes.includes(proven) ? [proven, ...modes.filter(m => m !== proven)] : modes
}

async function openPool(
  mode: Mode,
  url: string,
  kernel: Promise<ArrayBuffer | undefined>,
): Promise<Workplace> {
  const scriptUrl = trusted(url)
  const pool = new WorkerPool(() => new Worker(scriptUrl), await threadCount())
  await pool.ready
  return {
    mode,
    solve: async (puzzle, onProgress) => pool.solve(puzzle, await kernel, onProgress),
    close: () => pool.close(),
  }
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): {
    createScriptURL(url: string): string
  }
}

let policy: ReturnType<TrustedTypes['createPolicy']> | undefined

/** A worker's address for pages with Trusted Types. The policy is made only when a worker is: frames need none. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  policy ??= trustedTypes?.createPolicy('powgate', { createScriptURL: same => same })
  return policy === undefined ? url : policy.createScriptURL(url)
}

async function openPage({ base, mode }: ModeSettings): Promise<Workplace> {
  // A page that refused all else has a strict policy: compiling WebAssembly would be one more violation.
  const mayCompile = mode !== 'page' && typeof Worker === 'undefined'
  const kernel = mayCompile ? fetchKernel(base) : Promise.resolve(undefined)
  const { solveInSlices } = (await import(base + ASSET_NAMES['page.js'])) as typeof import('./page.ts')
  return {
    mode: 'page',
    solve: async (puzzle, onProgress, signal) => solveInSlices(puzzle, await kernel, onProgress, signal),
    close: () => {},
  }
}
