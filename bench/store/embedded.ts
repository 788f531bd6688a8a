/** An embedded store in a directory of its own, with counters of LMDB and of the operating system. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openState, type StateEnvironment } from '../../src/store/embedded/environment.ts'
import { EmbeddedStore } from '../../src/store/embedded/store.ts'
import { leftovers } from '../../test/harness/processes.ts'
import type { Drive } from './drive.ts'
import { ownCpuMs, type Sample, type Subject, type SubjectOptions } from './figures.ts'

/** No bound: what a full store refuses is not measured. */
const BYTES_MAX = Number.MAX_SAFE_INTEGER
const PAGE_BYTES = 4096

export async function startEmbedded({ clock, sweeps = false }: SubjectOptions): Promise<Subject> {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-bench-'))
  let sinceStartMs = 0
  const now = () => clock!() + sinceStartMs
  const clocks = { monotonicMs: now, wallMs: now }
  const options = { dataDir, bytesMax: BYTES_MAX, sweeps, ...(clock === undefined ? {} : { clocks }) }
  const removal = { stop: async () => remove() }
  const remove = () => {
    leftovers.delete(removal)
    rmSync(dataDir, { recursive: true, force: true })
  }
  leftovers.add(removal)
  const store = new EmbeddedStore(options)
  await store.open()
  // Opened by the same process, the files and their transactions are the store's own, with the store's own settings.
  const state = openState(dataDir)
  return {
    store: store.requests,
    cpuMs: ownCpuMs,
    measured: pass => measured(state, pass),
    // LMDB has no others: a turn holds this process, which `measured` tells.
    holding: async passes => {
      await passes()
      return {}
    },
    stateBytes: async () => allocatedBytes(join(dataDir, 'state')),
    stateKeys: async () => statsOf(state).entryCount,
    expired: async () => {
      sinceStartMs += ALL_EXPIRED_MS
      return await untilSwept(() => statsOf(state).entryCount)
    },
    stop: async () => {
      await state.file.close()
      await store.close()
      remove()
    },
  }
}

async function measured(state: StateEnvironment, pass: () => Promise<Drive>): Promise<Sample> {
  const [before, ioBefore, faultsBefore] = [statsOf(state), writtenBytes(), minorFaults()]
  const { operations, elapsedMs, cpuMs, longestTurnMs } = await pass()
  const [faultsAfter, ioAfter, after] = [minorFaults(), writtenBytes(), statsOf(state)]
  const transactions = after.lastTxnId - before.lastTxnId
  return {
    clientUs: (cpuMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    transactionUs: (elapsedMs / transactions) * 1000,
    transactionCpuUs: (cpuMs / transactions) * 1000,
    operationsPerTransaction: operations / transactions,
    longestTurnMs,
    ...(ioBefore !== undefined &&
      ioAfter !== undefined && {
        pagesWritten: (ioAfter.passed - ioBefore.passed) / PAGE_BYTES / operations,
        pagesDirtied: (ioAfter.dirtied - ioBefore.dirtied) / PAGE_BYTES / operations,
      }),
    pageFaults: (faultsAfter - faultsBefore) / operations,
    treeDepth: after.treeDepth,
  }
}

interface LmdbStats {
  readonly treeDepth: number
  readonly entryCount: number
  readonly lastTxnId: number
}

/** Of what requests leave. */
function statsOf({ file: { root }, windows, marks }: StateEnvironment): LmdbStats {
  root.resetReadTxn() // or an older snapshot would answer
  const stats = [windows, marks].map(database => database.getStats() as LmdbStats)
  return {
    treeDepth: Math.max(...stats.map(({ treeDepth }) => treeDepth)),
    entryCount: stats.reduce((sum, { entryCount }) => sum + entryCount, 0),
    lastTxnId: (root.getStats() as LmdbStats).lastTxnId,
  }
}

/**
 * Bytes that this process has written so far. LMDB copies each page that a transaction changes, and gives all copies to the
 * system at the end of the transaction. Nothing waits for a disk, because the state is not synced. What the disk gets later
 * depends on when the system finds the time, so two bounds are told: `passed` counts every page handed over, as often as it
 * was; `dirtied` only those that the disk was not owed already. undefined where the kernel does not count.
 */
function writtenBytes(): { passed: number; dirtied: number } | undefined {
  try {
    const io = readFileSync('/proc/self/io', 'latin1')
    const bytes = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(io)?.[1])
    return { passed: bytes('wchar'), dirtied: bytes('write_bytes') }
  } catch {
    return undefined
  }
}

function minorFaults(): number {
  return process.resourceUsage().minorPageFault
}

/** What the files take on the disk: they may have holes. */
function allocatedBytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).blocks * 512, 0)
}

/** Later than anything is kept: meters are for up to a week. */
const ALL_EXPIRED_MS = 8 * 86_400_000
const GIVE_UP_MS = 120_000
const POLL_MS = 100
const IDLE_MS = 500

/** The store sweeps by itself, some at a time with pauses, and its sweeper is awake at least once a second. */
async function untilSwept(entries: () => number): Promise<Sample> {
  const keys = entries()
  const [startMs, startCpuMs] = [performance.now(), ownCpuMs()]
  while (entries() > 0) {
    if (performance.now() - startMs > GIVE_UP_MS) throw new Error('the keys are not swept')
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  const [tookMs, spentMs] = [performance.now() - startMs, ownCpuMs() - startCpuMs]
  const idleFromMs = ownCpuMs()
  await new Promise(resolve => setTimeout(resolve, IDLE_MS))
  const idleShare = (ownCpuMs() - idleFromMs) / IDLE_MS
  return { keys, tookMs, expiryUs: ((spentMs - idleShare * tookMs) / keys) * 1000, idleShare }
}
