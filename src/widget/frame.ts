/**
 * What the worker's script does in the hidden frame, which has the service's origin and policy: it starts workers for a page whose
 * own policy allows none. Any page may embed the frame, because its workers only compute.
 */

import { END_WORKER, START_WORKER, type WorkerReport } from './solver/job.ts'

export function startWorkers(): void {
  const { src } = document.currentScript as HTMLScriptElement
  addEventListener('message', ({ data, source, ports: [port] }) => {
    if (source !== parent || data !== START_WORKER || port === undefined) return
    const fail = (error: unknown) =>
      port.postMessage({ kind: 'failed', message: `${error}` } satisfies WorkerReport)
    try {
      const worker = new Worker(src)
      worker.onmessage = report => port.postMessage(report.data)
      worker.onerror = ({ message }) => fail(message)
      port.onmessage = order =>
        order.data === END_WORKER ? worker.terminate() : worker.postMessage(order.data)
    } catch (error) {
      fail(error)
    }
  })
  // The page's origin is unknown here, and pages from files and in sandboxes have none.
  parent.postMessage(START_WORKER, '*')
}
