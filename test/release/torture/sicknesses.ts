/** What can go wrong with a Redis that is running: how each sickness begins, and how it is cured. */

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

export const PASSWORD = 'the password before it is rotated'

/** A Redis server that a case can break, with a proxy in front. */
export class Patient {
  readonly run: Run
  readonly redis: RedisServer
  readonly proxy: SickProxy
  readonly random: Random
  #admin: Redis

  private constructor(run: Run, redis: RedisServer, proxy: SickProxy) {
    this.run = run
    this.redis = redis
    this.proxy = proxy
    this.random = run.random.fork()
    this.#admin = this.#client()
  }

  /** It is stopped when the case has ended. */
  static async start(run: Run): Promise<Patient> {
    const args = ['--enable-debug-command', 'local', '--enable-protected-configs', 'local']
    const redis = await RedisServer.start(args, { password: PASSWORD })
    run.defer(() => redis.stop())
    const proxy = await SickProxy.start(redis.port)
    run.defer(() => proxy.stop())
    const patient = new Patient(run, redis, proxy)
    run.defer(() => patient.#admin.disconnect())
    return patient
  }

  #client(): Redis {
    const client = new Redis({ ...this.redis.clientOptions, retryStrategy: () => null })
    client.on('error', () => {})
    return client
  }

  /** Sends a command on one connection that bypasses the proxy and is logged in from the start. */
  ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    return this.#admin.call(command, ...args)
  }

  async config(name: string, value: string | number): Promise<void> {
    await this.ask('config', 'set', name, value)
  }

  /** kill -9, then another start. */
  async restart(args: readonly string[]): Promise<void> {
    await this.redis.kill()
    this.#admin.disconnect()
    await this.redis.boot(args)
    this.#admin = this.#client()
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

type Settings = Readonly<Record<string, string | number>>

/** A sickness by settings, cured by settings. */
function set(name: string, ill: Settings, well: Settings): Sickness {
  const strike: Sickness['strike'] = async patient => {
    const config = async (settings: Settings) => {
      for (const [setting, value] of Object.entries(settings)) await patient.config(setting, value)
    }
    await config(ill)
    if (name.startsWith('connections')) await patient.ask('client', 'kill', 'type', 'normal', 'skipme', 'yes')
    return () => config(well)
  }
  return { name, strike }
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

async function flushScripts(patient: Patient): Promise<Cure> {
  const stop = patient.run.every(20, () => patient.ask('script', 'flush').catch(() => {}))
  return async () => stop()
}

async function makeReadOnly(patient: Patient): Promise<Cure> {
  await patient.ask('replicaof', '127.0.0.1', 1)
  return async () => void (await patient.ask('replicaof', 'no', 'one'))
}

const LOADED_KEYS_A_SECOND = 1000

async function load(patient: Patient, ms: number): Promise<Cure> {
  await patient.ask('debug', 'populate', Math.round((ms / 1000) * LOADED_KEYS_A_SECOND), 'ballast')
  await patient.ask('save')
  const slowly = ['--key-load-delay', String(1e6 / LOADED_KEYS_A_SECOND)]
  await patient.restart([...slowly, '--loading-process-events-interval-bytes', '1024'])
  return async () => {
    let illUntilMs = performance.now()
    for (;;) {
      const askedMs = performance.now()
      const info = String(await patient.ask('info', 'persistence').catch(() => 'loading:1'))
      if (info.includes('\nloading:0')) break
      illUntilMs = askedMs
      await sleep(5)
    }
    const wellFromMs = performance.now()
    await patient.ask('eval', "for i=0,1e5 do if redis.call('DEL','ballast:'..i)==0 then break end end", 0)
    return { illUntilMs, wellFromMs }
  }
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
  onTheWay('every reply cut in its middle, connection reset', random => {
    return { kind: 'cut', keep: bytes => random.below(bytes) }
  }),
  onTheWay('every reply byte by byte', () => ({ kind: 'bytes' }), { isMild: true }),
  onTheWay('every reply 1 s late', () => late(() => 1000), { seconds: 10 }),
  onTheWay('replies up to 1 s late', random => late(() => random.below(1000)), { isMild: true, seconds: 10 }),
  onTheWay('black hole', () => ({ kind: 'black-hole' }), { seconds: 10 }),
  onTheWay('connections refused', () => ({ kind: 'refuse' })),
  { name: 'SCRIPT FLUSH every 20 ms', strike: flushScripts, isMild: true },
  { name: 'READONLY (made a replica)', strike: makeReadOnly },
  { name: 'LOADING (restarted with a snapshot)', strike: load, passes: true },
  set('OOM (maxmemory, noeviction)', { maxmemory: 1 }, { maxmemory: 0 }),
  { name: 'MISCONF (snapshots fail)', strike: failSnapshots },
  set('connections ended, password rotated', { requirepass: 'another password' }, { requirepass: PASSWORD }),
  set('connections ended, MAXCLIENTS reached', { maxclients: 1 }, { maxclients: 10_000 }),
  passing('CLIENT PAUSE ALL', ms => ['client', 'pause', ms, 'all']),
  passing('CLIENT PAUSE WRITE', ms => ['client', 'pause', ms, 'write']),
  passing('DEBUG SLEEP', ms => ['debug', 'sleep', ms / 1000]),
]
