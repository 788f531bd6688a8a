/**
 * Chooses where the puzzle is solved. A script cannot ask what the page's policy (CSP) allows, and every attempt that it forbids is a
 * violation report to the site's owner. So the modes that need the least come first (docs/reference/widget.md, "Strict pages"):
 *
 *   worker  a worker file of the page's own origin
 *   frame   a frame of the service, under the service's policy
 *   blob    a worker made of a blob
 *   page    the page's own thread, in slices
 *
 * Beside each, the GPU searches too.
 *
 * Injected markup can set `endpoint`. So scripts with the page's rights (of `worker`, `blob`, `page` and the GPU) load only from
 * `codeAssets`, where widget.js came from, or the page's `worker-src`. If the page pins widget.js by `integrity` (`isPinned`), they
 * are pinned too, except a worker file, which browsers cannot pin. The frame has only the service's rights, and kernels (WebAssembly)
 * have none, so both load from `assets`, the folder at `endpoint`.
 */

import type { PuzzleName } from '../protocol/proof.ts'
import { sleep, timeoutSignal, unclobbered } from './dom.ts'
import { loadModule, trusted } from './scripts.ts'
import { isOffline, throwIfAborted } from './service.ts'
import { isPinned, type Settings } from './settings.ts'
import { openFrame } from './solver/frame-host.ts'
import type { Job, Mode, SolvePage, SolverSession } from './solver/job.ts'
import {
  FILE_MS_MAX,
  fetchKernel,
  ModeBlockedError,
  type PoolWorker,
  threadCount,
  WorkerPool,
} from './solver/pool.ts'

export interface ModeSettings extends Settings {
  /** The element's shadow tree, for the frame. */
  readonly frameParent: ShadowRoot
  /** Ends the solver. */
  readonly signal: AbortSignal
}

/** Each puzzle's script for mode `page`, with its integrity value, as the build defines them. Workers have one file for both. */
const PAGE_SCRIPTS = {
  sha256: [ASSET_NAMES.pageJs, ASSET_PINS.pageJs],
  hashwx: [ASSET_NAMES.hashwxPageJs, ASSET_PINS.hashwxPageJs],
} as const

type Opener = (settings: ModeSettings, puzzle: PuzzleName) => Promise<SolverSession>

const OPENERS: Readonly<Record<Mode, Opener>> = {
  worker: (settings, puzzle) => {
    const { codeAssets, workerSrc } = settings
    const url = workerSrc ? workerUrl(workerSrc) : codeUrl(codeAssets, ASSET_NAMES.workerJs)
    return openPool('worker', settings, puzzle, starter(url), fetchKernel(settings.assets, puzzle))
  },
  frame: async (settings, puzzle) => {
    const { assets, frameParent } = settings
    const kernel = fetchKernel(assets, puzzle)
    const { startWorker, close } = await openFrame(assets, frameParent)
    return openPool('frame', settings, puzzle, startWorker, kernel, close)
  },
  blob: async (settings, puzzle) => {
    const { assets, codeAssets } = settings
    const url = codeUrl(codeAssets, ASSET_NAMES.workerJs)
    await probeBlobWorker()
    const kernel = fetchKernel(assets, puzzle)
    const response = await fetch(url, {
      signal: timeoutSignal(FILE_MS_MAX),
      referrerPolicy: 'no-referrer',
      integrity: isPinned ? ASSET_PINS.workerJs : '',
    })
    if (!response.ok) throw new Error(`${url}: status ${response.status}`)
    const blob = blobUrl(await response.text())
    // The URL is revoked at the end: some workers may still be loading it.
    return openPool('blob', settings, puzzle, starter(blob), kernel, () => URL.revokeObjectURL(blob))
  },
  page: openPage,
}

function codeUrl(codeAssets: string | undefined, name: string): string {
  if (codeAssets === undefined) throw new Error('no codeAssets')
  return codeAssets + name
}

/** Accepts only a worker's name, because markup could name any script of the page's origin. */
function workerUrl(workerSrc: string): string {
  const { href } = new URL(workerSrc, unclobbered(document).baseURI)
  if (/^http[^?#]*\/(powgate-|widget\/)worker[.\da-f]*\.js([?#]|$)/.test(href)) return href
  throw new Error('worker-src: expected powgate-worker.js')
}

/**
 * Modes that the page forbids, or in which all workers failed. No element of the page tries them again, unless `page` fails too: then
 * the network was the cause, or nothing works.
 */
const refused = new Set<Mode>()

/** Tries the modes in turn, `page` last. @throws the error of `page`: its script does not load */
export async function openSession(settings: ModeSettings, puzzle: PuzzleName): Promise<SolverSession> {
  for (const mode of modesFor(settings)) {
    try {
      return await OPENERS[mode](settings, puzzle)
    } catch (error) {
      throwIfAborted(settings.signal) // A frame that left the page with its element was not forbidden.
      // Without network every mode fails, a worker's file as if it were forbidden, and the next may be one that the policy forbids.
      if (isOffline()) throw error
      if (error instanceof ModeBlockedError) refused.add(mode)
      console.info(`pow-gate: mode "${mode}" cannot be used: ${error}`)
    }
  }
  return OPENERS.page(settings, puzzle).catch(error => {
    refused.clear()
    throw error
  })
}

function modesFor({ assets, codeAssets, workerSrc, mode }: ModeSettings): Mode[] {
  // `endpoint` is markup, and must not choose which file of the page's own origin runs as a worker.
  const isOwnOrigin = assets === codeAssets && new URL(assets).origin === location.origin
  const usual: Mode[] = workerSrc || isOwnOrigin ? ['worker', 'frame', 'blob'] : ['frame', 'blob']
  return (mode ? [mode] : usual).filter(one => one !== 'page' && !refused.has(one))
}

const blobUrl = (script: string) => URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))

const PROBE_MS_MAX = 3000

/** Runs before anything is loaded for workers made of a blob. @throws ModeBlockedError if the page forbids them */
async function probeBlobWorker(): Promise<void> {
  const url = blobUrl('postMessage(0)')
  let stop = () => {}
  try {
    const worker = new Worker(trusted(url))
    stop = () => worker.terminate()
    await new Promise((resolve, reject) => {
      worker.onmessage = resolve
      // Some pages replace Worker by a class that does nothing.
      setTimeout(reject, PROBE_MS_MAX, new Error('a worker did not load'))
      worker.onerror = event => {
        event.preventDefault()
        reject(new ModeBlockedError('the page does not allow the worker'))
      }
    })
  } finally {
    stop()
    URL.revokeObjectURL(url)
  }
}

async function openPool(
  mode: Mode,
  { assets, codeAssets, signal, threads: threadsMax }: ModeSettings,
  puzzle: PuzzleName,
  start: () => PoolWorker,
  kernel: Promise<ArrayBuffer | undefined>,
  onClose = () => {},
): Promise<SolverSession> {
  // If WebAssembly is forbidden, a worker of HashWX loads this script by `importScripts`, which takes no integrity value. So on a page
  // that pins this build only the frame's workers may: they have the service's rights, not the page's.
  const scriptFolder = mode === 'frame' ? assets : isPinned ? undefined : codeAssets
  const script = scriptFolder && scriptFolder + ASSET_NAMES.hashwxScriptJs
  const pool = new WorkerPool(start, kernel, { puzzle, script })
  const close = () => {
    pool.close()
    onClose()
  }
  try {
    await pool.ready
    throwIfAborted(signal)
    signal.addEventListener('abort', close)
  } catch (error) {
    close()
    throw error
  }
  // The number of threads is read only when the challenge has said what may be read.
  const threads = async ({ signals }: Job) =>
    threadsMax > 1 ? Math.min(threadsMax, await threadCount(signals)) : 1
  return {
    mode,
    solve: async (job, ...rest) =>
      pool.solve(job, await threads(job), ...rest).catch(error => {
        refused.add(mode)
        throw error
      }),
  }
}

function starter(url: string): () => Worker {
  const scriptUrl = trusted(url)
  return () => new Worker(scriptUrl)
}

async function openPage(settings: ModeSettings, puzzle: PuzzleName): Promise<SolverSession> {
  const { assets, codeAssets, mode, signal } = settings
  // A browser that has workers mostly comes here because the page's policy refuses them, also with solver="page". Such a policy rarely
  // allows WebAssembly, and each try would be one more violation report.
  const mayCompile = mode !== 'page' && typeof Worker === 'undefined'
  const kernel = mayCompile ? fetchKernel(assets, puzzle) : Promise.resolve(undefined)
  const [name, pin] = PAGE_SCRIPTS[puzzle]
  const url = codeUrl(codeAssets, name)
  const { solvePage } = await loadModule<{ solvePage: SolvePage }>(url, pin)
  return {
    mode: 'page',
    solve: async (job, ...rest) => solvePage(await kernel, job, ...rest, signal),
  }
}

/** Most devices have solved a challenge of fewer bits before their GPU would start. */
const GPU_BITS_MIN = 20
const GPU_AFTER_MS = 100

/** Resolves with a counter; never settles without a GPU, or if it fails. @param goesOn gets the tries so far; false ends the search */
export async function searchOnGpu(
  { codeAssets, gpu }: ModeSettings,
  job: Job,
  goesOn: (tries: number) => boolean,
): Promise<number> {
  const isAllowed = /^(on|software)?$/.test(gpu) // Any other word switches the GPU off.
  const isHard = job.algorithm === 'sha256' && job.difficulty >= GPU_BITS_MIN
  if (isHard && isAllowed && codeAssets && 'gpu' in navigator) {
    await sleep(GPU_AFTER_MS)
    const url = codeAssets + ASSET_NAMES.gpuJs
    try {
      if (goesOn(0)) {
        const { search } = await loadModule<typeof import('./gpu.ts')>(url, ASSET_PINS.gpuJs)
        return await search(job, gpu, goesOn)
      }
    } catch {
      // The threads go on alone.
    }
  }
  return new Promise(() => {})
}
