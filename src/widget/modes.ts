/**
 * Chooses where the puzzle is solved. A script cannot ask what the page's policy allows, and every attempt that it forbids is a
 * violation report to the site's owner. So the modes that need the least come first (docs/reference/widget.md, "Strict pages"):
 *
 *   worker  a worker file of the page's own origin
 *   frame   a frame of the service, under the service's policy
 *   blob    a worker made of a blob
 *   page    the page's own thread, in slices
 */

import type { PuzzleName } from '../protocol/proof.ts'
import { bare, sleep, takeOut, timeoutSignal } from './dom.ts'
import { pinnedScript, type Settings } from './settings.ts'
import { openFrame } from './solver/frame-host.ts'
import type { Mode, Puzzle, SolvePage, SolverSession, Task } from './solver/job.ts'
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
}

/** Each puzzle's scripts, with their integrity values, and its frame. */
const FILES = {
  sha256: {
    worker: [ASSET_NAMES.workerJs, ASSET_PINS.workerJs],
    page: [ASSET_NAMES.pageJs, ASSET_PINS.pageJs],
    frame: ASSET_NAMES.frameHtml,
  },
  hashwx: {
    worker: [ASSET_NAMES.hashwxJs, ASSET_PINS.hashwxJs],
    page: [ASSET_NAMES.hashwxPageJs, ASSET_PINS.hashwxPageJs],
    frame: ASSET_NAMES.hashwxHtml,
  },
} as const

type Opener = (settings: ModeSettings, puzzle: PuzzleName) => Promise<SolverSession>

const OPENERS: Readonly<Record<Mode, Opener>> = {
  worker: (settings, puzzle) => {
    const { codeBase, workerSrc } = settings
    const url = workerSrc ? workerUrl(workerSrc) : codeUrl(codeBase, FILES[puzzle].worker[0])
    return openPool('worker', settings, puzzle, starter(url), fetchKernel(settings.base, puzzle))
  },
  frame: async (settings, puzzle) => {
    const { base, frameParent } = settings
    const kernel = fetchKernel(base, puzzle)
    const { startWorker, close } = await openFrame(base, FILES[puzzle].frame, frameParent)
    return openPool('frame', settings, puzzle, startWorker, kernel, close)
  },
  blob: async (settings, puzzle) => {
    const { base, codeBase } = settings
    const [name, pin] = FILES[puzzle].worker
    const url = codeUrl(codeBase, name)
    await probeBlobWorker()
    const kernel = fetchKernel(base, puzzle)
    const response = await fetch(url, {
      signal: timeoutSignal(FILE_MS_MAX),
      referrerPolicy: 'no-referrer',
      integrity: pinnedScript ? pin : '',
    })
    if (!response.ok) throw new Error(`${url}: status ${response.status}`)
    const blob = blobUrl(await response.text())
    // The URL is revoked at the end: some workers may still be loading it.
    return openPool('blob', settings, puzzle, starter(blob), kernel, () => URL.revokeObjectURL(blob))
  },
  page: openPage,
}

function codeUrl(codeBase: string | undefined, name: string): string {
  if (codeBase === undefined) throw new Error('no code base')
  return codeBase + name
}

/** Accepts only a file of the worker's name, because markup could name any script of the page's origin. */
function workerUrl(workerSrc: string): string {
  const { href } = new URL(workerSrc, bare(document).baseURI)
  if (/^http[^?#]*\/(powgate-|widget\/)worker[.\da-f]*\.js([?#]|$)/.test(href)) return href
  throw new Error('worker-src: expected powgate-worker.js')
}

/** Modes that the page forbids, or in which a solver failed. They are not tried again. */
const refused = new Set<Mode>()

/** Tries the modes in turn. @throws the error of `page`, the last one: its script does not load */
export async function openSession(settings: ModeSettings, puzzle: PuzzleName): Promise<SolverSession> {
  for (const mode of modesFor(settings)) {
    try {
      return await OPENERS[mode](settings, puzzle)
    } catch (error) {
      if (error instanceof ModeBlockedError) refused.add(mode)
      console.info(`pow-gate: mode "${mode}" cannot be used: ${error}`)
    }
  }
  return OPENERS.page(settings, puzzle)
}

function modesFor({ base, codeBase, workerSrc, mode }: ModeSettings): Mode[] {
  if (mode === 'page') return []
  // `endpoint` is markup, and must not choose which file of the page's own origin runs as a worker.
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

/** Runs before anything is loaded for workers made of a blob. @throws ModeBlockedError if the page forbids them */
async function probeBlobWorker(): Promise<void> {
  const url = blobUrl('postMessage(0)')
  try {
    const worker = new Worker(trusted(url))
    const answer = new Promise((resolve, reject) => {
      worker.onmessage = resolve
      // Some pages replace Worker by a class that does nothing.
      setTimeout(reject, PROBE_MS_MAX, new Error('a worker says nothing'))
      worker.onerror = event => {
        event.preventDefault()
        reject(new ModeBlockedError('blob workers are forbidden'))
      }
    })
    try {
      await answer
    } finally {
      worker.terminate()
    }
  } finally {
    URL.revokeObjectURL(url)
  }
}

async function openPool(
  mode: Mode,
  { base, codeBase, threads: threadsMax }: ModeSettings,
  puzzle: PuzzleName,
  start: () => PoolWorker,
  kernel: Promise<ArrayBuffer | undefined>,
  onClose = () => {},
): Promise<SolverSession> {
  // Where WebAssembly is forbidden, a worker of HashWX loads this script by `importScripts`, which takes no integrity value. So on a
  // page that pins this build only the frame's workers may: they have the service's rights, not the page's.
  const folder = mode === 'frame' ? base : pinnedScript ? undefined : codeBase
  const script = folder && folder + ASSET_NAMES.hashwxScriptJs
  const pool = new WorkerPool(start, kernel, { puzzle, script })
  const close = () => {
    pool.close()
    onClose()
  }
  try {
    await pool.ready
  } catch (error) {
    close()
    throw error
  }
  // The number of threads is read only when the challenge has said what may be read.
  const threads = async ({ signals }: Task) =>
    threadsMax > 1 ? Math.min(threadsMax, await threadCount(signals)) : 1
  return {
    mode,
    puzzle,
    close,
    solve: async (task, ...rest) =>
      pool.solve(task, await threads(task), ...rest).catch(error => {
        refused.add(mode)
        throw error
      }),
  }
}

function starter(url: string): () => Worker {
  const scriptUrl = trusted(url)
  return () => new Worker(scriptUrl)
}

/** A policy of Trusted Types. */
interface Policy {
  createScriptURL(url: string): string
}

let policy: Policy | undefined

/** Makes a script's address acceptable to pages with Trusted Types. @throws ModeBlockedError if they do not allow our policy */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as {
    trustedTypes?: { createPolicy(name: string, rules: Policy): Policy }
  }
  try {
    policy ??= trustedTypes?.createPolicy('powgate', { createScriptURL: same => same })
  } catch {
    throw new ModeBlockedError('trusted-types lacks powgate')
  }
  return policy === undefined ? url : policy.createScriptURL(url)
}

async function openPage({ base, codeBase, mode }: ModeSettings, puzzle: PuzzleName): Promise<SolverSession> {
  // If the browser has workers, it was a policy that refused the other modes, and compiling would be one more violation.
  const mayCompile = mode !== 'page' && typeof Worker === 'undefined'
  const kernel = mayCompile ? fetchKernel(base, puzzle) : Promise.resolve(undefined)
  const closed = new AbortController()
  const [name, pin] = FILES[puzzle].page
  const url = codeUrl(codeBase, name)
  const { solvePage } = await loadModule<{ solvePage: SolvePage }>(url, pin)
  return {
    mode: 'page',
    puzzle,
    solve: async (task, ...rest) => solvePage(await kernel, task, ...rest, closed.signal),
    close: () => closed.abort(),
  }
}

/** Most devices have solved a challenge of fewer bits before their GPU would start. */
const GPU_BITS_MIN = 20
const GPU_AFTER_MS = 100

/**
 * Resolves with a counter; never settles without a GPU, or if it fails.
 *
 * @param goesOn called with the GPU's tries so far; the search ends if it returns false
 */
export async function searchOnGpu(
  { codeBase, gpu }: ModeSettings,
  puzzle: Puzzle,
  goesOn: (tries: number) => boolean,
): Promise<number> {
  const isAllowed = /^(on|software)?$/.test(gpu) // Any other word switches the GPU off.
  const isHard = puzzle.algorithm === 'sha256' && puzzle.difficulty >= GPU_BITS_MIN
  if (isHard && isAllowed && codeBase && 'gpu' in navigator) {
    await sleep(GPU_AFTER_MS)
    const url = codeBase + ASSET_NAMES.gpuJs
    try {
      if (goesOn(0)) {
        const { search } = await loadModule<typeof import('./gpu.ts')>(url, ASSET_PINS.gpuJs)
        return await search(puzzle, gpu, goesOn)
      }
    } catch {
      // The threads go on alone.
    }
  }
  return new Promise(() => {})
}

/** Browsers check a module's integrity only when they load it, so this address must be new to the page. */
const MODULE_KEY = `#${Math.random()}`

/** A pinned build loads the module by a script element with `integrity`, and `import` finds it. */
function loadModule<Module>(address: string, integrity: string): Promise<Module> {
  const url = address + MODULE_KEY
  return new Promise((resolve, reject) => {
    // Other browsers' errors lack the address.
    const onerror = (why: unknown) =>
      reject(new Error(`${address}: ${why instanceof Error ? why : 'no script'}`))
    const onload = () => import(url).then(resolve, onerror)
    timeoutSignal(FILE_MS_MAX).addEventListener('abort', onerror)
    if (pinnedScript) {
      // WebKit ignores the integrity of `modulepreload` (WebKitGTK 2.50).
      const { nonce } = pinnedScript
      const attributes = { type: 'module', src: trusted(url), integrity, nonce }
      const page = bare(document)
      const script = Object.assign(page.createElement('script'), attributes, { onload, onerror })
      page.documentElement.append(script)
      takeOut(script) // it loads all the same
    } else onload()
  })
}
