/**
 * Entry of the frame: solves for a page whose own policy allows neither workers nor WebAssembly. The frame has the service's
 * origin, and the policy that the service sends with it. Any page may embed it, because the frame only computes.
 */

import { isNonceText } from '../protocol/proof.ts'
import type { FrameJob, FrameReport } from './solver/job.ts'
import { fetchKernel, threadCount, WorkerPool } from './solver/pool.ts'

/** Sent to any origin: no report is secret, and some pages (from files, in sandboxes) have no origin to name. */
const tell = (report: FrameReport) => parent.postMessage(report, '*')
const fail = (error: unknown) => tell({ powgate: 'failed', message: String(error) })

async function open(): Promise<void> {
  const start = () => new Worker(ASSET_NAMES.workerJs)
  const pool = new WorkerPool(start, await threadCount(), fetchKernel(''))
  addEventListener('message', ({ data, source }: MessageEvent<FrameJob>) => {
    if (source !== parent || data?.powgate !== 'solve' || !isNonceText(data.nonce)) return
    const { nonce, difficulty } = data
    pool
      .solve({ nonce, difficulty }, tries => tell({ powgate: 'progress', tries }))
      .then(solved => tell({ powgate: 'solved', solved }), fail)
  })
  await pool.ready
  tell({ powgate: 'ready' })
}

tell({ powgate: 'loading' })
open().catch(fail)
