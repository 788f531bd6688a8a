/** The page's side of the frame: adds the hidden frame to the page, and exchanges messages with it. */

import type { FrameJob, FrameReport, ModeSettings, Solved, Workplace } from './job.ts'
import { ModeBlockedError } from './pool.ts'

/** The frame, its script and its worker come from the network the first time. */
const READY_MS_MAX = 10_000
/** A frame that has loaded and sends no message was refused, or is an error page. */
const SILENT_MS_MAX = 1000

export async function openFrame({ base }: ModeSettings): Promise<Workplace> {
  const frame = document.createElement('iframe')
  frame.hidden = true
  frame.title = 'powgate'
  frame.src = base + ASSET_NAMES.frameHtml
  const { origin } = new URL(base)
  let onReport: (report: FrameReport) => void = () => {}
  const listen = ({ source, origin: sender, data }: MessageEvent<FrameReport>) => {
    if (source === frame.contentWindow && sender === origin && data?.powgate) onReport(data)
  }
  addEventListener('message', listen)
  const close = () => {
    removeEventListener('message', listen)
    frame.remove()
  }
  try {
    await untilReady(frame, report => {
      onReport = report
    })
  } catch (error) {
    close()
    throw error
  }
  return {
    mode: 'frame',
    close,
    solve: (puzzle, onProgress) =>
      new Promise<Solved>((resolve, reject) => {
        onReport = report => {
          if (report.powgate === 'progress') onProgress(report.tries)
          else if (report.powgate === 'solved') resolve(report.solved)
          else if (report.powgate === 'failed') reject(new Error(report.message))
        }
        const job: FrameJob = { ...puzzle, powgate: 'solve' }
        frame.contentWindow?.postMessage(job, origin)
      }).finally(close),
  }
}

/** Adds the frame to the page; rejects as soon as the frame is known not to work. */
function untilReady(
  frame: HTMLIFrameElement,
  hear: (onReport: (report: FrameReport) => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = ({ blockedURI }: SecurityPolicyViolationEvent) => {
      // Browsers give either the whole address or the origin alone.
      if (blockedURI !== '' && frame.src.startsWith(blockedURI))
        give(new ModeBlockedError('the page does not allow the frame'))
    }
    const give = (error?: Error) => {
      clearTimeout(timer)
      document.removeEventListener('securitypolicyviolation', refused)
      if (error === undefined) resolve()
      else reject(error)
    }
    let isLoading = false
    let timer = setTimeout(() => give(new Error('the frame did not load')), READY_MS_MAX)
    document.addEventListener('securitypolicyviolation', refused)
    frame.onload = () => {
      if (isLoading) return
      clearTimeout(timer)
      timer = setTimeout(() => give(new Error('the frame says nothing')), SILENT_MS_MAX)
    }
    hear(report => {
      if (report.powgate === 'loading') {
        isLoading = true
        clearTimeout(timer)
        timer = setTimeout(() => give(new Error('the frame does not get ready')), READY_MS_MAX)
      } else give(report.powgate === 'failed' ? new Error(report.message) : undefined)
    })
    document.documentElement.append(frame)
  })
}
