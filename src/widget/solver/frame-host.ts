/** The page's side of the hidden frame, which starts workers for the page (../worker.ts). */

import { listen, takeOut, unclobbered } from '../dom.ts'
import { END_WORKER, START_WORKER } from './job.ts'
import { ModeBlockedError, type PoolWorker } from './pool.ts'

const READY_MS_MAX = 10_000
/** A frame that has loaded and sends no message in this time was forbidden, or shows an error page. */
const SILENT_MS_MAX = 1000

/** @param parent the element's shadow tree, where style sheets and scripts of the page do not find the frame */
export async function openFrame(assets: string, parent: ShadowRoot) {
  const frame = unclobbered(document).createElement('iframe')
  frame.hidden = true
  frame.referrerPolicy = 'no-referrer'
  frame.title = 'powgate'
  frame.src = assets + ASSET_NAMES.frameHtml
  const { origin } = new URL(assets)
  // An element that was just created is not in the document yet, and frames load only there.
  const place = parent.isConnected ? parent : unclobbered(document).documentElement
  try {
    await untilReady(frame, origin, place)
  } catch (error) {
    takeOut(frame)
    throw error
  }
  return {
    startWorker: (): PoolWorker => {
      const { port1, port2 } = new MessageChannel()
      frame.contentWindow?.postMessage(START_WORKER, origin, [port2])
      return Object.assign(port1, { terminate: () => port1.postMessage(END_WORKER) })
    },
    close: () => takeOut(frame), // ends its workers too
  }
}

/** Adds the frame to `place`. Rejects as soon as the frame is known not to work. */
async function untilReady(frame: HTMLIFrameElement, origin: string, place: ParentNode): Promise<void> {
  const endings: (() => void)[] = []
  const ready = new Promise<void>((resolve, reject) => {
    const failAfter = (ms: number, message: string) => setTimeout(() => reject(new Error(message)), ms)
    failAfter(READY_MS_MAX, `${frame.src} did not load`)
    frame.onload = () => failAfter(SILENT_MS_MAX, `${frame.src} was refused, or did not load`)
    const onMessage = ({ source, origin: sender }: MessageEvent) => {
      if (source === frame.contentWindow && sender === origin) resolve()
    }
    const onViolation = ({ blockedURI, disposition, effectiveDirective }: SecurityPolicyViolationEvent) => {
      // Browsers give the whole address, or the origin alone, which other loads have too. A policy on trial (Report-Only) forbids nothing.
      const isOfFrame =
        /^(frame|child|default)-src/.test(effectiveDirective) && frame.src.startsWith(blockedURI)
      if (disposition !== 'report' && blockedURI !== '' && isOfFrame)
        reject(new ModeBlockedError('the page does not allow the frame'))
    }
    endings.push(listen(window, 'message', onMessage))
    endings.push(listen(document, 'securitypolicyviolation', onViolation))
    place.append(frame)
  })
  try {
    await ready
  } finally {
    for (const endListening of endings) endListening()
  }
}
