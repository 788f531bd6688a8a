/** A store process in a directory of its own, with counters of its own and of the operating system. */

import { fileURLToPath } from 'node:url'
import { socketTarget } from '../../src/config/redis.ts'
import { connect } from '../../src/store/client/connection.ts'
import { infoOf } from '../../src/store/client/inspection.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import { openEmbedded } from '../../test/harness/embedded.ts'
import { processUsage } from '../../test/harness/measure.ts'
import { temporaryDir } from '../../test/harness/temporary.ts'
import { startChildServer } from '../child-server.ts'
import type { Drive } from './drive.ts'
import { DEADLINE_MS, type Sample, type Subject, type SubjectOptions } from './figures.ts'

/** No bound: what a full store refuses is not measured. */
const BYTES_MAX = Number.MAX_SAFE_INTEGER
/** The built module: tsx' way to keep the names of functions takes a quarter more. */
const MODULE = fileURLToPath(new URL('../../dist/store/embedded/process.js', import.meta.url))

export async function startEmbedded({ clock }: SubjectOptions): Promise<Subject> {
  const dataDir = temporaryDir('bench')
  const server = await startChildServer(MODULE, [dataDir, String(BYTES_MAX)], 'SIGKILL')
  const options = { deadlineMs: DEADLINE_MS, ...(clock === undefined ? {} : { clock }) }
  const store = await openEmbedded(dataDir, options)
  const { ask, close } = connect(socketTarget(socketPath(dataDir)), DEADLINE_MS)
  const counted = async (name: string) => Number((await infoOf(ask, 'server'))[name])
  return {
    store: store.requests,
    measured: pass => measured(server.pid, pass),
    stateBytes: async () => processUsage(server.pid).residentBytes,
    stateKeys: () => counted('keys'),
    stop: async () => {
      close()
      await store.close()
      await server.stop()
    },
  }
}

async function measured(pid: number, pass: () => Promise<Drive>): Promise<Sample> {
  const { cpuMs } = processUsage(pid)
  const { operations, elapsedMs, cpuMs: clientMs, longestBatchMs } = await pass()
  return {
    storeUs: ((processUsage(pid).cpuMs - cpuMs) / operations) * 1000,
    clientUs: (clientMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    longestBatchMs,
  }
}
