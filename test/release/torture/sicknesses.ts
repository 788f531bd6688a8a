/**
 * What can go wrong with a Redis that is running: how each sickness begins, and how it is cured. A replaced password, READONLY,
 * LOADING, a full memory and flushed scripts are in test/store/.
 */

import { mkdirSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { eventually } from '../../harness/eventually.ts'
import type { Random } from '../../harness/random.ts'
import { RedisServer } from '../../harness/redis.ts'
import { type Illness, SickProxy } from '../../harness/sick-proxy.ts'
import type { Run } from './run.ts'

/** A Redis server that a case can break, with a proxy in front. */
export class Patient {
  readonly redis: RedisServer
  readonly proxy: SickProxy
  readonly random: Random
  /** One connection that bypasses the proxy, and is there before the server refuses others. */
  readonly #admin: Redis

  private constructor(redis: RedisServer, proxy: SickProxy, random: Random) {
    this.redis = redis
    this.proxy = proxy
    this.random = random
    this.#admin = new Redis({ ...redis.clientOptions, retryStrategy: () => null })
    this.#admin.on('error', () => {})
  }

  /** It is stopped when the case has ended. */
  static async start(run: Run): Promise<Patient> {
    const args = ['--enable-debug-command', 'local', '--enable-protected-configs', 'local']
    const redis = await RedisServer.start(args)
    run.defer(() => redis.stop())
    const proxy = await SickProxy.start(redis.port)
    run.defer(() => proxy.stop())
    const patient = new Patient(redis, proxy, run.random.fork())
    run.defer(() => patient.#admin.disconnect())
    return patient
  }

  ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#admin.call(command, ...args)
  }

  async config(name: string, value: string | number): Promise<void> {
    await this.ask('config', 'set', name, value)
  }
}

/** When a sickness ended, by `performance.now`. */
interface Cured {
  /** The sickness lasted at least until then. */
  readonly illUntilMs: number
  /** The server was healthy from then on at the latest. */
  readonly wellFromMs: number
}

/** @returns when the sickness ended; undefined: with the cure */
type Cure = () => Promise<Cured> | Promise<void>

export interface Sickness {
  readonly name: string
  readonly strike: (patient: Patient, ms: number) => Promise<Cure>
  /** Whether redemptions can succeed all the same. */
  readonly isMild?: true
  /** Whether the sickness may be over before the cure. */
  readonly passes?: true
  /** Undefined: 5. */
  readonly seconds?: number
}

/** A sickness that ends by itself after the given time. */
function passing(name: string, command: (ms: number) => readonly [string, ...(string | number)[]]): Sickness {
  const strike: Sickness['strike'] = async (patient, ms) => {
    const endsMs = performance.now() + ms
    const answered = patient.ask(...command(ms))
    await sleep(20)
    return async () => {
      await answered
      await sleep(endsMs - performance.now())
      await patient.ask('ping')
      // Redis measures from when it reads the command, in whole milliseconds.
      return { illUntilMs: endsMs - 5, wellFromMs: performance.now() }
    }
  }
  return { name, strike, passes: true }
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
  onTheWay('replies up to 1 s late', random => late(() => random.below(1000)), { isMild: true, seconds: 10 }),
  onTheWay('black hole', () => ({ kind: 'black-hole' }), { seconds: 10 }),
  onTheWay('connections refused', () => ({ kind: 'refuse' })),
  { name: 'MISCONF (snapshots fail)', strike: failSnapshots },
  { name: 'connections ended, MAXCLIENTS reached', strike: refuseOthers },
  passing('CLIENT PAUSE ALL', ms => ['client', 'pause', ms, 'all']),
  passing('CLIENT PAUSE WRITE', ms => ['client', 'pause', ms, 'write']),
  passing('DEBUG SLEEP', ms => ['debug', 'sleep', ms / 1000]),
]
