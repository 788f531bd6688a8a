/** What goes wrong with a running Redis. (A replaced password, READONLY, LOADING, full memory and flushed scripts: test/store/.) */

import { mkdirSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { eventually } from '../../harness/eventually.ts'
import type { Random } from '../../harness/random.ts'
import { RedisServer } from '../../harness/redis.ts'
import { type Illness, SickProxy } from '../../harness/sick-proxy.ts'
import type { Run } from './run.ts'

/** A Redis server that a case can break, with a proxy in front. Both are stopped when the case has ended. */
export async function startPatient(run: Run) {
  const redis = await RedisServer.start(['--enable-protected-configs', 'local'])
  run.defer(() => redis.stop())
  const proxy = await SickProxy.start(redis.port)
  run.defer(() => proxy.stop())
  // One connection that bypasses the proxy, and is there before the server refuses others.
  const admin = new Redis({ ...redis.clientOptions, retryStrategy: () => null })
  admin.on('error', () => {})
  run.defer(() => admin.disconnect())
  const ask = (command: string, ...args: (string | number)[]) => admin.call(command, ...args)
  const config = (name: string, value: string | number) => ask('config', 'set', name, value)
  return { redis, proxy, random: run.random.fork(), ask, config }
}

export type Patient = Awaited<ReturnType<typeof startPatient>>

type Cure = () => Promise<unknown>

export interface Sickness {
  readonly name: string
  readonly strike: (patient: Patient) => Promise<Cure>
  /** Whether redemptions can succeed all the same. */
  readonly isMild?: true
  /** Whether a reply can miss the store deadline, so that a call is refused, which is no fault. */
  readonly isLate?: true
  /** Undefined: 5. */
  readonly seconds?: number
}

/** A sickness of the way to the server. */
function onTheWay(
  name: string,
  illness: (random: Random) => Illness,
  more: Partial<Sickness> = {},
): Sickness {
  const strike: Sickness['strike'] = async ({ proxy, random }) => {
    proxy.fall(illness(random))
    return async () => proxy.heal()
  }
  return { name, strike, ...more }
}

const late = (delayMs: () => number): Illness => ({ kind: 'slow', delayMs })

const SOMETIMES_LATE = { isMild: true, isLate: true, seconds: 10 } as const

async function freeze({ redis }: Patient): Promise<Cure> {
  redis.freeze()
  return async () => redis.thaw()
}

async function refuseOthers(patient: Patient): Promise<Cure> {
  await patient.config('maxclients', 1)
  await patient.ask('client', 'kill', 'type', 'normal', 'skipme', 'yes')
  return () => patient.config('maxclients', 10_000)
}

async function failSnapshots(patient: Patient): Promise<Cure> {
  const dir = join(tmpdir(), `powgate-gone-${patient.redis.port}`)
  mkdirSync(dir)
  const ownDir = ((await patient.ask('config', 'get', 'dir')) as string[])[1]!
  await patient.config('dir', dir)
  rmdirSync(dir)
  await patient.config('save', '3600 1')
  await patient.ask('bgsave')
  await eventually(20_000, 'the snapshot fails', async () =>
    String(await patient.ask('info', 'persistence')).includes('rdb_last_bgsave_status:err'),
  )
  return async () => {
    await patient.config('save', '')
    await patient.config('dir', ownDir)
  }
}

export const SICKNESSES: readonly Sickness[] = [
  { name: 'frozen (SIGSTOP)', strike: freeze, seconds: 10 },
  onTheWay('every reply cut, connection reset', random => {
    return { kind: 'cut', keep: bytes => random.below(bytes) }
  }),
  onTheWay('every reply byte by byte', () => ({ kind: 'bytes' }), { isMild: true }),
  onTheWay('every reply 1 s late', () => late(() => 1000), { seconds: 10 }),
  onTheWay('replies up to 1 s late', random => late(() => random.below(1000)), SOMETIMES_LATE),
  onTheWay('black hole', () => ({ kind: 'black-hole' }), { seconds: 10 }),
  onTheWay('connections refused', () => ({ kind: 'refuse' })),
  { name: 'MISCONF (snapshots fail)', strike: failSnapshots },
  { name: 'connections ended, MAXCLIENTS reached', strike: refuseOthers },
]
