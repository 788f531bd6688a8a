/**
 * Entry of the frame: solves for a page whose own policy allows neither workers nor WebAssembly. It belongs to the
 * service's origin and lives by the policy that the service sends with it. It does nothing but arithmetic, for any page
 * that embeds it, so it does not matter who asks.
 */

import { isNonceText } from '../protocol/proof.ts'
import type { FrameJob, FrameReport } from './solver/job.ts'
import { fetchKernel } from './solver/kernel-file.ts'
import { WorkerPool } from './solver/pool.ts'
import { threadCount } from './solver/threads.ts'

const tell = (report: FrameReport, origin = '*') => parent.postMessage(report, origin)
const fail = (error: unknown) => tell({ powgate: 'failed', message: String(error) })

async function open(): Promise<void> {
  const kernel = fetchKernel('')
  const pool = new WorkerPool(() => new Worker(ASSET_NAMES['worker.js']), await threadCount())
  addEventListener('message', ({ data, source, origin }: MessageEvent<FrameJob>) => {
    if (source !== parent || data?.powgate !== 'solve' || !isNonceText(data.nonce)) return
    const { nonce, difficulty } = data
    kernel
      .then(module =>
        pool.solve({ nonce, difficulty }, module, tries => tell({ powgate: 'progress', tries }, origin)),
      )
      .then(solved => tell({ powgate: 'solved', solved }, origin), fail)
  })
  await pool.ready
  tell({ powgate: 'ready' })
}

tell({ powgate: 'loading' })
open().catch(fail)
