/** The page's side of the frame: adds the hidden frame to the page, and has it start workers. */

import { START_WORKER } from './job.ts'
import { ModeBlockedError, type PoolWorker } from './pool.ts'

/** The frame and its script come from the network the first time. */
const READY_MS_MAX = 10_000
/** A frame that has loaded and sends no message was refused, or is an error page. */
const SILENT_MS_MAX = 1000

interface Frame {
  readonly startWorker: () => PoolWorker
  /** Ends its workers too. */
  readonly close: () => void
}

export async function openFrame(base: string): Promise<Frame> {
  const frame = document.createElement('iframe')
  frame.hidden = true
  frame.title = 'powgate'
  frame.src = base + ASSET_NAMES.frameHtml
  const { origin } = new URL(base)
  try {
    await untilReady(frame, origin)
  } catch (error) {
    frame.remove()
    throw error
  }
  return {
    startWorker: () => {
      const { port1, port2 } = new MessageChannel()
      frame.contentWindow?.postMessage(START_WORKER, origin, [port2])
      return Object.assign(port1, { terminate: () => port1.postMessage(0) })
    },
    close: () => frame.remove(),
  }
}

/** Adds the frame to the page; rejects as soon as the frame is known not to work. */
function untilReady(frame: HTMLIFrameElement, origin: string): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  return new Promise<void>((resolve, reject) => {
    const failAfter = (ms: number, message: string) => setTimeout(() => reject(new Error(message)), ms)
    failAfter(READY_MS_MAX, 'the frame did not load')
    frame.onload = () => failAfter(SILENT_MS_MAX, 'the frame says nothing')
    addEventListener(
      'message',
      ({ source, origin: sender }) => {
        if (source === frame.contentWindow && sender === origin) resolve()
      },
      { signal },
    )
    document.addEventListener(
      'securitypolicyviolation',
      ({ blockedURI }) => {
        // Browsers give either the whole address or the origin alone.
        if (blockedURI !== '' && frame.src.startsWith(blockedURI))
          reject(new ModeBlockedError('the page does not allow the frame'))
      },
      { signal },
    )
    document.documentElement.append(frame)
  }).finally(() => over.abort())
}
