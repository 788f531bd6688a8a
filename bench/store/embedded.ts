/** An embedded store in a directory of its own, with counters of LMDB and of the operating system. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openState, type StateEnvironment } from '../../src/store/embedded/environment.ts'
import { EmbeddedStore } from '../../src/store/embedded/store.ts'
import { eventually } from '../../test/harness/eventually.ts'
import { leftovers } from '../../test/harness/processes.ts'
import type { Drive } from './drive.ts'
import type { Sample, Subject, SubjectOptions } from './figures.ts'

/** No bound: what a full store refuses is not measured. */
const BYTES_MAX = Number.MAX_SAFE_INTEGER
const PAGE_BYTES = 4096
/** Later than anything is kept: meters are for up to a week. */
const ALL_EXPIRED_MS = 8 * 86_400_000
const SWEEP_MS_MAX = 120_000

export async function startEmbedded({ clock, sweeps = false }: SubjectOptions): Promise<Subject> {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-bench-'))
  let sinceStartMs = 0
  const now = () => clock!() + sinceStartMs
  const clocks = { monotonicMs: now, wallMs: now }
  const options = { dataDir, bytesMax: BYTES_MAX, sweeps, ...(clock === undefined ? {} : { clocks }) }
  const removal = {
    stop: async () => {
      leftovers.delete(removal)
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
  leftovers.add(removal)
  const store = new EmbeddedStore(options)
  await store.open()
  // Opened by the same process, the files and their transactions are the store's own, with the store's own settings.
  const state = openState(dataDir)
  return {
    store: store.requests,
    measured: pass => measured(state, pass),
    stateBytes: async () => allocatedBytes(join(dataDir, 'state')),
    stateKeys: async () => statsOf(state).entryCount,
    expired: async () => {
      const keys = statsOf(state).entryCount
      const [startMs, startCpu] = [performance.now(), process.cpuUsage()]
      sinceStartMs += ALL_EXPIRED_MS
      await eventually(SWEEP_MS_MAX, 'all keys are swept', () => statsOf(state).entryCount === 0)
      const { user, system } = process.cpuUsage(startCpu)
      return { keys, tookMs: performance.now() - startMs, expiryUs: (user + system) / keys }
    },
    stop: async () => {
      await state.file.close()
      await store.close()
      await removal.stop()
    },
  }
}

async function measured(state: StateEnvironment, pass: () => Promise<Drive>): Promise<Sample> {
  const [before, bytesBefore] = [statsOf(state), writtenBytes()]
  const { operations, elapsedMs, cpuMs, longestTurnMs } = await pass()
  const [bytes, after] = [writtenBytes(), statsOf(state)]
  const transactions = after.lastTxnId - before.lastTxnId
  return {
    clientUs: (cpuMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    transactionUs: (elapsedMs / transactions) * 1000,
    operationsPerTransaction: operations / transactions,
    longestTurnMs,
    ...(bytesBefore !== undefined &&
      bytes !== undefined && { pagesWritten: (bytes - bytesBefore) / PAGE_BYTES / operations }),
  }
}

interface LmdbStats {
  readonly entryCount: number
  readonly lastTxnId: number
}

/** Of what requests leave. */
function statsOf({ file: { root }, windows, marks }: StateEnvironment): LmdbStats {
  root.resetReadTxn() // or an older snapshot would answer
  const stats = [windows, marks].map(database => database.getStats() as LmdbStats)
  const { lastTxnId } = root.getStats() as LmdbStats
  return { entryCount: stats.reduce((sum, { entryCount }) => sum + entryCount, 0), lastTxnId }
}

/** That this process has handed to the system; undefined where the kernel does not count. LMDB writes each page that a transaction changed. */
function writtenBytes(): number | undefined {
  try {
    return Number(/^wchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'latin1'))?.[1])
  } catch {
    return undefined
  }
}

/** What the files take on the disk: they may have holes. */
function allocatedBytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).blocks * 512, 0)
}
