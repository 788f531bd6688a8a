/** What can go wrong with a Redis that is running: how each sickness begins, and how it is cured. */

import { mkdirSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { eventually } from '../harness/eventually.ts'
import { RedisServer } from '../harness/redis.ts'
import type { Random } from './random.ts'
import { type Illness, SickProxy } from './sick-proxy.ts'

export const PASSWORD = 'the password before it is rotated'

let flushing: NodeJS.Timeout | undefined

/** A Redis server that a case can break, with a proxy in front. */
export class Patient {
  readonly redis: RedisServer
  readonly proxy: SickProxy
  readonly random: Random
  #admin: Redis

  private constructor(redis: RedisServer, proxy: SickProxy, random: Random) {
    this.redis = redis
    this.proxy = proxy
    this.random = random
    this.#admin = this.#client()
  }

  static async start(random: Random): Promise<Patient> {
    const args = ['--enable-debug-command', 'local', '--enable-protected-configs', 'local']
    const redis = await RedisServer.start(args, { password: PASSWORD })
    return new Patient(redis, await SickProxy.start(redis.port), random)
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

  /** Which of the given keys exist. */
  async present(keys: readonly string[]): Promise<Set<string>> {
    const replies = (await this.#admin.pipeline(keys.map(key => ['exists', key])).exec())!
    return new Set(keys.filter((_, index) => replies[index]![1] === 1))
  }

  /** kill -9, then another start. */
  async restart(args: readonly string[]): Promise<void> {
    await this.redis.kill()
    this.#admin.disconnect()
    await this.redis.boot(args)
    this.#admin = this.#client()
  }

  async stop(): Promise<void> {
    clearInterval(flushing)
    this.#admin.disconnect()
    await this.proxy.stop()
    await this.redis.stop()
  }
}

/** When a sickness ended, by `performance.now`. */
export interface Cured {
  /** The sickness lasted at least until then. */
  readonly illUntilMs: number
  /** The server was healthy from then on at the latest. */
  readonly wellFromMs: number
}

export interface Sickness {
  readonly name: string
  /** Whether no redemption can succeed. */
  readonly isFatal: boolean
  /** Whether earlier redemption records may be lost. */
  readonly forgets?: true
  readonly seconds: number
  strike(patient: Patient, ms: number): Promise<void>
  cure(patient: Patient): Promise<unknown>
  /** Called after the cure; if undefined, the sickness ended with the cure. */
  cured?(): Cured
}

/** A sickness that ends by itself after the given time. */
function passing(name: string, command: (ms: number) => readonly [string, ...(string | number)[]]): Sickness {
  let endsMs = 0
  let wellFromMs = 0
  let answered: Promise<unknown> = Promise.resolve()
  return {
    name,
    isFatal: true,
    seconds: 5,
    async strike(patient, ms) {
      endsMs = performance.now() + ms
      answered = patient.ask(...command(ms))
      await sleep(20)
    },
    async cure(patient) {
      await answered
      await sleep(endsMs - performance.now())
      await patient.ask('ping')
      wellFromMs = performance.now()
    },
    // Redis measures from when it reads the command, in whole milliseconds.
    cured: () => ({ illUntilMs: endsMs - 5, wellFromMs }),
  }
}

/** A sickness by settings, cured by settings. */
function set(
  name: string,
  ill: Record<string, string | number>,
  well: Record<string, string | number>,
): Sickness {
  return {
    name,
    isFatal: true,
    seconds: 5,
    async strike(patient) {
      for (const [setting, value] of Object.entries(ill)) await patient.config(setting, value)
      if (name.startsWith('connections'))
        await patient.ask('client', 'kill', 'type', 'normal', 'skipme', 'yes')
    },
    async cure(patient) {
      for (const [setting, value] of Object.entries(well)) await patient.config(setting, value)
    },
  }
}

const frozen: Sickness = {
  name: 'frozen (SIGSTOP)',
  isFatal: true,
  seconds: 10,
  strike: async ({ redis }) => redis.freeze(),
  cure: async ({ redis }) => redis.thaw(),
}

const scriptFlush: Sickness = {
  name: 'SCRIPT FLUSH every 20 ms',
  isFatal: false,
  seconds: 5,
  async strike(patient) {
    flushing = setInterval(() => patient.ask('script', 'flush').catch(() => {}), 20)
  },
  cure: async () => clearInterval(flushing),
}

const readOnly: Sickness = {
  name: 'READONLY (made a replica)',
  isFatal: true,
  forgets: true,
  seconds: 5,
  async strike(patient) {
    await patient.ask('replicaof', '127.0.0.1', 1)
  },
  cure: patient => patient.ask('replicaof', 'no', 'one'),
}

const LOADED_KEYS_A_SECOND = 1000

const loaded = { illUntilMs: 0, wellFromMs: 0 }

const loading: Sickness = {
  name: 'LOADING (restarted with a snapshot)',
  isFatal: true,
  forgets: true,
  seconds: 5,
  async strike(patient, ms) {
    await patient.ask('debug', 'populate', Math.round((ms / 1000) * LOADED_KEYS_A_SECOND), 'ballast')
    await patient.ask('save')
    const slowly = ['--key-load-delay', String(1e6 / LOADED_KEYS_A_SECOND)]
    await patient.restart([...slowly, '--loading-process-events-interval-bytes', '1024'])
  },
  async cure(patient) {
    loaded.illUntilMs = performance.now()
    for (;;) {
      const askedMs = performance.now()
      const info = String(await patient.ask('info', 'persistence').catch(() => 'loading:1'))
      if (info.includes('\nloading:0')) break
      loaded.illUntilMs = askedMs
      await sleep(5)
    }
    loaded.wellFromMs = performance.now()
    await patient.ask('eval', "for i=0,1e5 do if redis.call('DEL','ballast:'..i)==0 then break end end", 0)
  },
  cured: () => ({ ...loaded }),
}

let ownDir = ''

const misconf: Sickness = {
  name: 'MISCONF (snapshots fail)',
  isFatal: true,
  seconds: 5,
  async strike(patient) {
    const dir = join(tmpdir(), `powgate-gone-${patient.redis.port}`)
    mkdirSync(dir)
    ownDir = ((await patient.ask('config', 'get', 'dir')) as string[])[1]!
    await patient.config('dir', dir)
    rmdirSync(dir)
    await patient.config('save', '3600 1')
    await patient.ask('bgsave')
    await eventually(20_000, 'the snapshot fails', async () =>
      String(await patient.ask('info', 'persistence')).includes('rdb_last_bgsave_status:err'),
    )
  },
  async cure(patient) {
    await patient.config('save', '')
    await patient.config('dir', ownDir)
  },
}

/** A sickness of the way to the server. */
function onTheWay(
  name: string,
  { isFatal = true, seconds = 5 },
  illness: (random: Random) => Illness,
): Sickness {
  return {
    ...{ name, isFatal, seconds },
    strike: async ({ proxy, random }) => proxy.fall(illness(random)),
    cure: async ({ proxy }) => proxy.heal(),
  }
}

const late = (delayMs: () => number): Illness => ({ kind: 'slow', delayMs })

const PROXY: readonly Sickness[] = [
  onTheWay('every reply cut in its middle, connection reset', {}, random => ({
    kind: 'cut',
    keep: bytes => random.below(bytes),
  })),
  onTheWay('every reply byte by byte', { isFatal: false }, () => ({ kind: 'bytes' })),
  onTheWay('every reply 1 s late', { seconds: 10 }, () => late(() => 1000)),
  onTheWay('replies up to 1 s late', { isFatal: false, seconds: 10 }, random =>
    late(() => random.below(1000)),
  ),
  onTheWay('black hole', { seconds: 10 }, () => ({ kind: 'black-hole' })),
  onTheWay('connections refused', {}, () => ({ kind: 'refuse' })),
]

export const SICKNESSES: readonly Sickness[] = [
  frozen,
  ...PROXY,
  scriptFlush,
  readOnly,
  loading,
  set('OOM (maxmemory, noeviction)', { maxmemory: 1 }, { maxmemory: 0 }),
  misconf,
  set('connections ended, password rotated', { requirepass: 'another password' }, { requirepass: PASSWORD }),
  set('connections ended, MAXCLIENTS reached', { maxclients: 1 }, { maxclients: 10_000 }),
  passing('CLIENT PAUSE ALL', ms => ['client', 'pause', ms, 'all']),
  passing('CLIENT PAUSE WRITE', ms => ['client', 'pause', ms, 'write']),
  passing('DEBUG SLEEP', ms => ['debug', 'sleep', ms / 1000]),
]
