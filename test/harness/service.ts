/**
 * The built service with either store, in processes of its own, as an operator runs it; and a site for its tests. Its secrets and all
 * that it prints are noted, and test/canaries.ts searches the prints for the secrets when all tests have run.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/config/config.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { demoApiKey } from '../../src/demo/site.ts'
import type { Lifetimes } from '../../src/domain/nonce.ts'
import { PUZZLES } from '../../src/protocol/proof.ts'
import { createSite, type SiteOptions } from '../../src/sites/sites.ts'
import { openSiteStore } from '../../src/store/open.ts'
import { noteProcesses, noteSecret, noteText } from './canaries.ts'
import { eventually, PATIENCE_MS } from './eventually.ts'
import { call, closeIdleConnections, freshAddress } from './http.ts'
import { freePort } from './ports.ts'
import { endProcess, hasEnded, leftovers } from './processes.ts'
import { RedisServer } from './redis.ts'

export type StoreKind = 'embedded' | 'redis'
/** `shared`: no Redis of its own is started, because the setting REDIS_URL names one that other hosts use too. */
export type StartKind = StoreKind | 'shared'
/** Under Stryker, which sees what tests reach in their own process alone. Its tests (test/mutants.config.mjs) use no `pid` and no `ended`. */
const IS_IN_PROCESS = process.env.STRYKER_NAMESPACE !== undefined
export const STORE_KINDS: readonly StoreKind[] = IS_IN_PROCESS ? ['embedded'] : ['embedded', 'redis']

/** Known to the tests, so that they can make nonces and tokens themselves. */
export const TEST_SECRET = 'a test secret of more than thirty-two characters'

const MANY = '1000000'
export const UNLIMITED_CHALLENGES = {
  POWGATE_LIMIT_CHALLENGE_ADDRESS: MANY,
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: MANY,
}
export const UNLIMITED_REDEMPTIONS = {
  POWGATE_LIMIT_REDEEM_ADDRESS: MANY,
  POWGATE_LIMIT_REDEEM_API_KEY: MANY,
}
/** For tests that make more requests than one visitor may. */
export const UNLIMITED = {
  ...UNLIMITED_CHALLENGES,
  POWGATE_LIMIT_VERIFY_ADDRESS: MANY,
  POWGATE_LIMIT_VERIFY_ADDRESS_SITE: MANY,
  ...UNLIMITED_REDEMPTIONS,
}

/** For tests of what visitors meet while Redis is away. */
export const DEADLINE_AS_SHIPPED = {
  POWGATE_STORE_DEADLINE_MS: SETTINGS.POWGATE_STORE_DEADLINE_MS.fallback,
} as const

const MAIN = new URL('../../dist/main.js', import.meta.url).pathname

export interface TestSite {
  readonly siteKey: string
  readonly apiKey: string
}

/** Difficulties of sites whose challenges tests solve in no time; the second stays the same however busy a site gets. */
export const EASY = { base: 16, min: 16, max: 28 }
export const ALWAYS_EASY = { base: 16, min: 16, max: 16 }

/** So many connections of a test reach each of two workers: the chance that one of them gets none is 2 in a million. */
export const CONNECTIONS = 20

/** Ends, with its own Redis, when the test file ends, if the test did not stop it before (`leftovers`). */
export class TestService {
  readonly port: number
  readonly url: string
  /** Started for this service alone. */
  readonly redis: RedisServer | undefined
  readonly env: Readonly<Record<string, string>>
  readonly dataDir: string
  readonly #main: string
  /** What its processes have printed, in all starts. */
  output = ''
  #process: ChildProcess | undefined
  #endInProcess: (() => Promise<void>) | undefined

  private constructor(
    port: number,
    redis: RedisServer | undefined,
    env: Record<string, string>,
    main: string,
  ) {
    this.#main = main
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    this.redis = redis
    this.dataDir = mkdtempSync(join(tmpdir(), 'powgate-test-'))
    this.env = {
      HOST: '127.0.0.1',
      PORT: String(port),
      POWGATE_WORKERS: '2',
      POWGATE_DATA_DIR: this.dataDir,
      POWGATE_SECRETS: TEST_SECRET,
      // Connections that a test still has open are not needed once it stops the service.
      POWGATE_DRAIN_SECONDS: '1',
      // On a busy machine a worker may get more requests than it can answer; only few tests are about overload.
      POWGATE_OVERLOAD_MS: '0',
      // It may also answer late, which is no outage.
      POWGATE_STORE_DEADLINE_MS: '5000',
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
      ...env,
    }
    for (const secret of this.env.POWGATE_SECRETS?.split(',') ?? []) {
      noteSecret('master secret', secret)
      for (const puzzle of PUZZLES) noteSecret('api key', demoApiKey(secret, puzzle))
    }
  }

  /** @param env settings besides the tests' own (two workers, loopback, a known secret) @param main the entry of another build */
  static async start(kind: StartKind, env: Record<string, string> = {}, main = MAIN): Promise<TestService> {
    const redis = kind === 'redis' ? await RedisServer.start() : undefined
    const service = new TestService(await freePort(), redis, env, main)
    leftovers.add(service)
    try {
      await service.boot()
    } catch (error) {
      await service.stop()
      throw error
    }
    return service
  }

  /** A service that is not started yet, on a port that may be in use: see `boot`. */
  static prepare(env: Record<string, string>, port: number): TestService {
    const service = new TestService(port, undefined, env, MAIN)
    leftovers.add(service)
    return service
  }

  /** Starts the processes, also after they have ended: port and data directory stay. */
  async boot(): Promise<void> {
    if (IS_IN_PROCESS) {
      const { serveInProcess } = await import('./in-process.ts')
      this.#endInProcess = await serveInProcess(this.env)
      return
    }
    const { PATH, HOME } = process.env
    const child = spawn(process.execPath, [this.#main], {
      env: { PATH, HOME, ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    const outputBefore = this.output.length
    const printed = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        printed[name] += text
        this.output += text
      })
    child.once('close', () => noteText('output', `${printed.stdout}\n${printed.stderr}`))
    const logsThatItListens = !/^(warn|error|fatal|silent)$/.test(this.env.LOG_LEVEL ?? '')
    await eventually<unknown>(
      PATIENCE_MS,
      () => `the service listens:\n${this.output}`,
      () => {
        if (hasEnded(child)) throw new Error(`the service ended with ${child.exitCode}:\n${this.output}`)
        if (logsThatItListens) return this.output.includes('powgate listens', outputBefore)
        return call(this.url).catch(() => undefined)
      },
    )
    noteProcesses(child.pid!)
  }

  get pid(): number {
    return this.#process!.pid!
  }

  /**
   * Resolves when all workers have reached Redis: they wait for it a second, then answer 503 until it is there.
   *
   * @param url where the service can be called by clients at any address
   * @param site all workers have read this site too; without one, they answer 403 to a site key that nobody has
   */
  async untilReady(url = this.url, site?: TestSite): Promise<void> {
    const headers = { 'X-Site-Key': site?.siteKey ?? `site_${'0'.repeat(22)}` }
    const status = site === undefined ? 403 : 200
    await eventually(PATIENCE_MS, 'all workers have reached the store', async () => {
      const ask = () => call(`${url}/challenge`, { headers, from: freshAddress() }).catch(() => undefined)
      const answers = await Promise.all(Array.from({ length: CONNECTIONS }, ask))
      return answers.every(answer => answer?.status === status)
    })
    closeIdleConnections()
  }

  /** A store client, to read and change sites while the service runs; the caller closes it. */
  openSites() {
    return openSiteStore(loadConfig(this.env))
  }

  async createSite(options: SiteOptions = {}): Promise<TestSite> {
    const store = await this.openSites()
    try {
      const { site, apiKey } = await createSite(store, { name: 'test', ...options })
      noteSecret('api key', apiKey)
      return { siteKey: site.siteKey, apiKey }
    } finally {
      await store.close()
    }
  }

  /** Sends a signal to the primary process, and resolves with its exit code when it has ended. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const [child, endInProcess] = [this.#process, this.#endInProcess]
    this.#process = this.#endInProcess = undefined
    if (endInProcess !== undefined) {
      closeIdleConnections()
      await endInProcess()
    }
    if (child === undefined) return null
    if (!hasEnded(child)) {
      noteProcesses(child.pid!)
      closeIdleConnections()
      await endProcess(child, signal)
    }
    return child.exitCode
  }

  /** Resolves with the primary process's exit code when it has ended by itself. */
  async ended(): Promise<number | null> {
    const child = this.#process!
    if (!hasEnded(child)) await once(child, 'exit')
    return child.exitCode
  }

  async stop(): Promise<void> {
    leftovers.delete(this)
    await this.end('SIGTERM')
    await this.redis?.stop()
    await eventually(PATIENCE_MS, 'the data directory goes', () => isRemoved(this.dataDir))
  }
}

/** A store process whose primary was killed may still write to the directory, and then Node.js cannot remove it. */
function isRemoved(path: string): boolean {
  try {
    rmSync(path, { recursive: true, force: true })
    return true
  } catch {
    return false
  }
}

export function lifetimesOf(env: Readonly<Record<string, string>> = {}): Lifetimes {
  const milliseconds = (name: 'POWGATE_CHALLENGE_SECONDS' | 'POWGATE_TOKEN_SECONDS') =>
    Number(env[name] ?? SETTINGS[name].fallback) * 1000
  return {
    challengeLifetimeMs: milliseconds('POWGATE_CHALLENGE_SECONDS'),
    tokenLifetimeMs: milliseconds('POWGATE_TOKEN_SECONDS'),
  }
}
