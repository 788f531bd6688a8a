/**
 * Where the puzzle is solved. A strict page may allow little, and a script cannot ask what: every attempt that the policy
 * forbids is a violation report to the site's owner. So the modes that need the least are tried first:
 *
 *   worker  a worker file of the page's own origin (attribute `worker-src`, or the service itself if it is that origin)
 *   frame   an isolated frame of the service, under the service's policy; the page must allow the frame
 *   blob    a worker made of a blob; the page must allow `blob:` workers, and 'wasm-unsafe-eval' for full speed
 *   page    the page's own thread, in short slices
 */

import { bare } from './dom.ts'
import { pinnedScript } from './settings.ts'
import { openFrame } from './solver/frame-host.ts'
import type { Mode, ModeSettings, Puzzle, Task, Workplace } from './solver/job.ts'
import {
  fetchKernel,
  ModeBlockedError,
  type PoolWorker,
  patience,
  threadCount,
  WorkerPool,
} from './solver/pool.ts'

export interface PageSettings extends ModeSettings {
  /** The shadow tree of the element, where the mode `frame` puts its frame. */
  readonly frameParent: ShadowRoot
}

type Opener = (settings: PageSettings) => Promise<Workplace>

const OPENERS: Readonly<Record<Mode, Opener>> = {
  worker: ({ base, codeBase, workerSrc, threads }) => {
    const url = workerSrc ? workerUrl(workerSrc) : codeUrl(codeBase, ASSET_NAMES.workerJs)
    return openPool('worker', threads, starter(url), fetchKernel(base))
  },
  frame: async ({ base, threads, frameParent }) => {
    const kernel = fetchKernel(base)
    const { startWorker, close } = await openFrame(base, frameParent)
    return openPool('frame', threads, startWorker, kernel, close)
  },
  blob: async ({ base, codeBase, threads }) => {
    const url = codeUrl(codeBase, ASSET_NAMES.workerJs)
    await probeBlobWorker()
    const kernel = fetchKernel(base)
    const response = await fetch(url, {
      signal: patience(),
      referrerPolicy: 'no-referrer',
      integrity: pinnedScript ? ASSET_PINS.workerJs : '',
    })
    if (!response.ok) throw new Error(`worker: status ${response.status}`)
    const blob = blobUrl(await response.text())
    // Not revoked earlier: some workers may still be loading the blob.
    return openPool('blob', threads, starter(blob), kernel, () => URL.revokeObjectURL(blob))
  },
  page: openPage,
}

function codeUrl(codeBase: string | undefined, name: string): string {
  if (codeBase === undefined) throw new Error('no code base')
  return codeBase + name
}

/** Allows only a file with the worker's own name: `worker-src` is markup, and could name any script of the page's origin. */
function workerUrl(workerSrc: string): string {
  const { href } = new URL(workerSrc, bare(document).baseURI)
  if (/^http[^?#]*\/(powgate-|widget\/)worker[.\da-f]*\.js([?#]|$)/.test(href)) return href
  throw new Error('worker-src: expected powgate-worker.js')
}

/** Modes that the page refused, or in which a solver failed: renewals do not try them again. */
const refused = new Set<Mode>()

/** Excludes a mode, because a solver failed in it. */
export function distrust(mode: Mode): void {
  if (mode !== 'page') refused.add(mode)
}

/** @throws Error if even the page's own thread cannot be used, because its script could not be loaded */
export async function openWorkplace(settings: PageSettings): Promise<Workplace> {
  for (const mode of modesFor(settings)) {
    try {
      return await OPENERS[mode](settings)
    } catch (error) {
      if (error instanceof ModeBlockedError) refused.add(mode)
      // Tells the integrator why the expected mode is not used; nothing is wrong for the visitor.
      console.info(`pow-gate: mode "${mode}" cannot be used here: ${error}`)
    }
  }
  return OPENERS.page(settings)
}

function modesFor({ base, codeBase, workerSrc, mode }: ModeSettings): Mode[] {
  if (mode === 'page') return []
  // The page's own origin serves more than this service, so `endpoint` must not choose which of its files runs as a worker.
  const isOwnOrigin = base === codeBase && new URL(base).origin === location.origin
  const modes: Mode[] = mode
    ? [mode]
    : workerSrc || isOwnOrigin
      ? ['worker', 'frame', 'blob']
      : ['frame', 'blob']
  return modes.filter(candidate => !refused.has(candidate))
}

const blobUrl = (script: string) => URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))

const PROBE_MS_MAX = 3000

/** Checks that the page allows workers made of blobs, before anything is loaded for one. Throws ModeBlockedError. */
async function probeBlobWorker(): Promise<void> {
  const url = blobUrl('postMessage(0)')
  const worker = new Worker(trusted(url))
  try {
    await new Promise<unknown>((resolve, reject) => {
      worker.onmessage = resolve
      // Some pages replace Worker by a class that does nothing.
      setTimeout(reject, PROBE_MS_MAX, new Error('a worker says nothing'))
      worker.onerror = event => {
        event.preventDefault()
        reject(new ModeBlockedError('blob workers are forbidden'))
      }
    })
  } finally {
    worker.terminate()
    URL.revokeObjectURL(url)
  }
}

async function openPool(
  mode: Mode,
  threadsMax: number,
  start: () => PoolWorker,
  kernel: Promise<ArrayBuffer | undefined>,
  closeMore = () => {},
): Promise<Workplace> {
  const pool = new WorkerPool(start, kernel)
  const close = () => {
    pool.close()
    closeMore()
  }
  try {
    await pool.ready
  } catch (error) {
    close()
    throw error
  }
  // What decides on the threads is read after the challenge, which says how much the site asks for; of one thread nothing is.
  const threads = async ({ signals }: Task) =>
    threadsMax > 1 ? Math.min(threadsMax, await threadCount(signals)) : 1
  return { mode, close, solve: async (task, ...rest) => pool.solve(task, await threads(task), ...rest) }
}

/** Starts workers of one script. */
function starter(url: string): () => Worker {
  const scriptUrl = trusted(url)
  return () => new Worker(scriptUrl)
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

/** A script's address, for pages with Trusted Types. The policy is made with the first script, because frames need none. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  policy ??= trustedTypes?.createPolicy('powgate', { createScriptURL: same => same })
  return policy === undefined ? url : policy.createScriptURL(url)
}

async function openPage({ base, codeBase, mode }: ModeSettings): Promise<Workplace> {
  // A page that refused all other modes has a strict policy: compiling WebAssembly would be one more violation.
  const mayCompile = mode !== 'page' && typeof Worker === 'undefined'
  const kernel = mayCompile ? fetchKernel(base) : Promise.resolve(undefined)
  const closed = new AbortController()
  const url = codeUrl(codeBase, ASSET_NAMES.pageJs)
  const { solveInSlices } = await loadModule<typeof import('./page.ts')>(url, ASSET_PINS.pageJs)
  return {
    mode: 'page',
    solve: async (task, ...rest) => solveInSlices(task, await kernel, ...rest, closed.signal),
    close: () => closed.abort(),
  }
}

/** Fewer bits are solved before a GPU has started, on most devices. */
const GPU_BITS_MIN = 20
/** The GPU starts only where the threads take longer. */
const GPU_AFTER_MS = 100

/**
 * Lets the visitor's GPU search beside the threads, which never wait for it. The promise resolves with the counter, and never
 * settles if there is no GPU or it fails.
 *
 * @param goesOn called with the number of tries so far; false ends the search
 */
export function searchOnGpu(
  { codeBase, gpu }: ModeSettings,
  puzzle: Puzzle,
  goesOn: (tries: number) => boolean,
): Promise<number> {
  const load = () => loadModule<typeof import('./gpu.ts')>(codeBase + ASSET_NAMES.gpuJs, ASSET_PINS.gpuJs)
  return new Promise(resolve => {
    // Any other word switches it off.
    const isAllowed = /^(on|software)?$/.test(gpu)
    if (puzzle.difficulty < GPU_BITS_MIN || !isAllowed || !codeBase || !('gpu' in navigator)) return
    setTimeout(
      () =>
        goesOn(0) &&
        load()
          .then(({ search }) => search(puzzle, gpu, goesOn))
          .then(resolve, () => {}),
      GPU_AFTER_MS,
    )
  })
}

/** Browsers check a module's integrity only when they load it. So the address is one that no markup can have loaded before. */
const MODULE_KEY = `#${Math.random()}`

/** If the build is pinned, a script element with `integrity` loads the module first; `import` then uses the loaded module. */
function loadModule<Module>(address: string, integrity: string): Promise<Module> {
  const url = address + MODULE_KEY
  return new Promise((resolve, reject) => {
    const onerror = () => reject(new Error('the script did not load'))
    const onload = () => import(url).then(resolve, reject)
    patience().addEventListener('abort', onerror)
    if (pinnedScript) {
      // Not `modulepreload`, whose integrity WebKit ignores (WebKitGTK 2.50).
      const { nonce } = pinnedScript
      const attributes = { type: 'module', src: trusted(url), integrity, nonce }
      const page = bare(document)
      const script = Object.assign(page.createElement('script'), attributes, { onload, onerror })
      page.documentElement.append(script)
      script.remove() // the script loads all the same, and renewals leave no elements behind
    } else onload()
  })
}
