/** A store process in a directory of its own, with counters of its own and of the operating system. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { socketTarget } from '../../src/config/redis.ts'
import { connect } from '../../src/store/client/connection.ts'
import { infoOf } from '../../src/store/client/inspection.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import { openEmbedded } from '../../test/harness/embedded.ts'
import { processUsage } from '../../test/harness/measure.ts'
import { leftovers } from '../../test/harness/processes.ts'
import { temporaryDir } from '../../test/harness/temporary.ts'
import type { Drive } from './drive.ts'
import { DEADLINE_MS, type Sample, type Subject, type SubjectOptions } from './figures.ts'

/** No bound: what a full store refuses is not measured. */
const BYTES_MAX = Number.MAX_SAFE_INTEGER
/** The built module: tsx' way to keep the names of functions takes a quarter more. */
const MODULE = fileURLToPath(new URL('../../dist/store/embedded/process.js', import.meta.url))

export async function startEmbedded({ clock }: SubjectOptions): Promise<Subject> {
  const dataDir = temporaryDir('bench')
  const child = fork(MODULE, [dataDir, String(BYTES_MAX)])
  const exited = once(child, 'exit')
  const running = {
    stop: async () => {
      leftovers.delete(running)
      child.kill('SIGKILL')
      await exited
    },
  }
  leftovers.add(running)
  await once(child, 'message') // that it serves
  const options = { deadlineMs: DEADLINE_MS, ...(clock === undefined ? {} : { clock }) }
  const store = await openEmbedded(dataDir, options)
  const { ask, close } = connect(socketTarget(socketPath(dataDir)), DEADLINE_MS)
  const counted = async (name: string) => Number((await infoOf(ask, 'server'))[name])
  return {
    store: store.requests,
    measured: pass => measured(child.pid!, pass),
    stateBytes: async () => processUsage(child.pid!).residentBytes,
    stateKeys: () => counted('keys'),
    stop: async () => {
      close()
      await store.close()
      await running.stop()
    },
  }
}

async function measured(pid: number, pass: () => Promise<Drive>): Promise<Sample> {
  const { cpuMs } = processUsage(pid)
  const { operations, elapsedMs, cpuMs: clientMs, longestTurnMs } = await pass()
  return {
    storeUs: ((processUsage(pid).cpuMs - cpuMs) / operations) * 1000,
    clientUs: (clientMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    longestTurnMs,
  }
}
