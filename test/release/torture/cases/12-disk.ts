/**
 * Disks that are full, read-only or damaged. In every case a redeemed token is not redeemed again. Either all sites are there,
 * or the service does not start and prints a line that says why.
 */

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { freshAddress } from '../../../harness/http.ts'
import { type TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../../../harness/service.ts'
import { EASY, redemptionRequest, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { type Ending, Pool } from '../wire.ts'

const SITES = 40
const DISK_BYTES = 6 * 2 ** 20
const CHALLENGES = 1500
const RECOVERY_MS = 15_000

export const disk: TortureCase = {
  number: 12,
  name: 'disk',
  aim: 'a clear line; it refuses rather than forgets; sites are never lost',
  fullSize: 'each way to damage a data directory; disk full, read-only',
  async run(run) {
    await full(run)
    await damaged(run)
  },
}

/** A service with sites, a redeemed token and one that is not redeemed. */
class Scene {
  readonly run: Run
  readonly service: TestService
  readonly site: TestSite
  readonly used: string
  readonly fresh: string
  #configured: string[] = []

  private constructor(run: Run, service: TestService, site: TestSite, mint: TokenMint) {
    this.run = run
    this.service = service
    this.site = site
    this.used = mint.mint()
    this.fresh = mint.mint()
  }

  static async set(run: Run, env: Record<string, string> = {}): Promise<Scene> {
    // Minutes later tokens must still be refused as used, not as expired.
    const settings = { ...UNLIMITED_REDEMPTIONS, POWGATE_TOKEN_SECONDS: '3600', ...env }
    const service = await run.service('embedded', settings)
    const site = await service.createSite({ difficulty: EASY })
    for (let count = 1; count < SITES; count++) await service.createSite({ name: `site ${count}` })
    const scene = new Scene(run, service, site, await TokenMint.open(service.url, site, run.random.fork()))
    const ending = await scene.redeem(scene.used)
    run.check(statusOf(ending) === 200, `a token was not redeemed: ${JSON.stringify(ending)}`)
    await scene.configured()
    return scene
  }

  /** From now on the sites and keys that are there must be there. */
  async configured(): Promise<void> {
    this.#configured = await this.#listing()
  }

  get dataDir(): string {
    return this.service.env.POWGATE_DATA_DIR!
  }

  async redeem(token: string): Promise<Ending> {
    const pool = new Pool({ port: this.service.port, connections: 1, timeoutMs: 10_000 })
    return pool.call(redemptionRequest(this.site.apiKey, token)).finally(() => pool.close())
  }

  /** All stored data of all sites and API keys. */
  async #listing(): Promise<string[]> {
    const store = await this.service.openSites()
    const records = [await store.listSites(), await store.listApiKeys()]
    await store.close()
    for (const some of records) this.run.check(some.length >= SITES, `only ${some.length} sites or keys`)
    return records.flat().map(record => JSON.stringify(record))
  }

  /** @param words what was done before */
  async checkWhole(words: string): Promise<void> {
    const found = await this.#listing()
    const [gone, strange] = [
      this.#configured.filter(line => !found.includes(line)),
      found.filter(line => !this.#configured.includes(line)),
    ]
    this.run.none(`${words}: sites and API keys that are gone, or were not there`, [...gone, ...strange])
    for (const token of [this.used, this.fresh]) {
      const ending = await this.redeem(token)
      const isRight = isTold(ending) && !(token === this.used && statusOf(ending) === 200)
      this.run.check(isRight, () => `${words}: a token gets ${JSON.stringify(ending)}`)
    }
    await eventually(RECOVERY_MS, 'a visitor is served', () => this.#serves()).catch(error =>
      this.run.check(false, `${words}: ${(error as Error).message}\n${this.service.output.slice(-2000)}`),
    )
  }

  /** One whole flow of a new visitor. */
  async #serves(): Promise<boolean> {
    const visitor = { from: freshAddress() }
    const token = await new Client(this.service.url).token(this.site.siteKey, visitor).catch(() => '')
    return statusOf(await this.redeem(token)) === 200
  }

  /** Starts it. @returns '' if it serves, or the lines that it printed at its end */
  async start(): Promise<string> {
    const before = this.service.output.length
    try {
      await this.service.boot()
      return ''
    } catch (error) {
      const code = await this.service.end('SIGKILL')
      const lines = this.service.output.slice(before).trim()
      return `${code === 1 ? '' : `exit code ${code}: `}${lines || (error as Error).message}`
    }
  }
}

const statusOf = (ending: Ending) => (typeof ending === 'string' ? ending : ending.status)

/** Redeemed, refused as used or forgotten, or without a known outcome. */
function isTold(ending: Ending): boolean {
  if (typeof ending === 'string') return false
  const { status, code } = ending
  return status === 200 || status === 503 || code === 'token-used' || code === 'token-forgotten'
}

/** Whether the output is one readable line about POWGATE_DATA_DIR, with a required word and no stack. */
function isLine(lines: string, word: string): boolean {
  const said = lines.split('\n').filter(line => !line.startsWith('{'))
  return said.length === 1 && said[0]!.startsWith('POWGATE_DATA_DIR: ') && said[0]!.includes(word)
}

async function full(run: Run): Promise<void> {
  const path = smallDisk(run)
  if (path === undefined) {
    const problem = 'no full and no read-only disk: mounting one needs root with CAP_SYS_ADMIN'
    run.size(problem)
    run.check(!run.isFull, problem)
    return
  }
  const scene = await Scene.set(run, { POWGATE_DATA_DIR: join(path, 'data') })
  const { service, site } = scene
  const filling = fill(path)
  const client = new Client(service.url)
  for (let index = 0; index < CHALLENGES; index++) {
    const { status } = await client.challenge(site.siteKey, { from: freshAddress() })
    run.check(status === 200, `on a full disk a challenge is answered ${status}`)
  }
  run.check(statusOf(await scene.redeem(scene.used)) !== 200, 'on a full disk a token is redeemed again')
  const make = () =>
    service.createSite({ name: 'x'.repeat(100) }).then(
      () => 'was made',
      (error: Error) => error.message,
    )
  let change = await make()
  for (let count = 0; count < 20 && change === 'was made'; count++) change = await make() // the last page has room
  await scene.configured()
  run.check(
    /^POWGATE_DATA_DIR: .*was not done: the disk is full$/.test(change),
    `on a full disk a site ${change}`,
  )
  await service.end()
  const lines = await scene.start()
  run.check(lines === '' || isLine(lines, 'full'), `on a full disk it starts with: ${lines}`)
  rmSync(filling)
  if (lines !== '') run.check((await scene.start()) === '', 'it does not start when there is room again')
  await scene.checkWhole('after the disk was full')

  await service.end()
  execFileSync('mount', ['-o', 'remount,ro', path])
  const readOnly = await scene.start()
  run.check(isLine(readOnly, scene.dataDir), `on a read-only disk it starts with: ${readOnly}`)
  execFileSync('mount', ['-o', 'remount,rw', path])
  run.check((await scene.start()) === '', 'it does not start when the disk takes writes again')
  await scene.checkWhole('after a read-only disk')
  await service.end()
  run.size('a disk of 6 MiB: full under load, restarted, room made, read-only')
}

/** A directory on a small disk of its own; undefined if mounting is not allowed (it needs CAP_SYS_ADMIN). */
function smallDisk(run: Run): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'powgate-disk-'))
  const options = ['-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=700`]
  try {
    execFileSync('mount', [...options, 'powgate-torture', path], { stdio: 'ignore' })
  } catch {
    rmSync(path, { recursive: true })
    return undefined
  }
  run.defer(() => {
    execFileSync('umount', ['-l', path])
    rmSync(path, { recursive: true })
  })
  return path
}

/** Fills all free space. @returns the file that fills it */
function fill(path: string): string {
  const file = join(path, 'fill')
  for (let bytes = 2 ** 20; bytes >= 1; bytes = Math.floor(bytes / 4)) {
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' })
      } catch {
        break
      }
    }
  }
  return file
}

/** Every start ends in one of two ways: an error line, or a service that has all its sites and all redemption records. */
async function damaged(run: Run): Promise<void> {
  const scene = await Scene.set(run)
  const { service, dataDir } = scene
  await service.end()
  // Without a configured secret, the service uses the one in the data directory.
  writeFileSync(join(dataDir, 'secret'), `${service.env.POWGATE_SECRETS}\n`)
  Object.assign(service.env, { POWGATE_SECRETS: '' })
  const copy = mkdtempSync(join(tmpdir(), 'powgate-copy-'))
  cpSync(dataDir, copy, { recursive: true })
  run.defer(() => rmSync(copy, { recursive: true, force: true }))
  const putBack = () => {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    cpSync(copy, dataDir, { recursive: true })
  }
  let [refused, served] = [0, 0]
  for (const [file, mustRefuse, words, damage] of WRECKS) {
    if (run.isOver(0.75) && refused + served > 3) break
    putBack()
    damage(join(dataDir, file))
    const [what, lines] = [`${file} ${words}`, await scene.start()]
    if (lines === '') {
      served++
      run.check(!mustRefuse, `${what}: it starts`)
      await scene.checkWhole(what)
      await service.end()
    } else {
      refused++
      run.check(isLine(lines, dataDir), `${what}: it ends with ${lines}`)
    }
  }
  putBack()
  run.check((await scene.start()) === '', 'the copy does not start')
  await scene.checkWhole('with the copy put back')
  run.size(`${refused + served} damaged data directories: ${refused} lines, ${served} starts`)
  await service.stop()
}

type Damage = readonly [words: string, act: (path: string) => void]

/** Ways to cut or replace a file. */
const DAMAGES: readonly Damage[] = [
  ['cut to 0 bytes', path => truncateSync(path, 0)],
  ['is gone', path => rmSync(path)],
  ['is a text', path => writeFileSync(path, 'no such thing\n'.repeat(1000))],
  [
    'is a directory',
    path => {
      rmSync(path)
      mkdirSync(path)
    },
  ],
  [
    'lacks the quotation mark after a name',
    path => {
      const bytes = readFileSync(path)
      const at = bytes.indexOf('"', Math.floor(bytes.length / 2))
      writeFileSync(path, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]))
    },
  ],
]

/** Without its sites or its secret, the service must not start. */
const WRECKS: readonly (readonly [file: string, mustRefuse: boolean, ...Damage])[] = [
  ...DAMAGES.map(damage => ['sites.jsonl', true, ...damage] as const),
  ...DAMAGES.map(damage => ['state', false, ...damage] as const),
  ['secret', true, 'is empty', path => writeFileSync(path, '')],
  ['secret', true, 'is cut', path => writeFileSync(path, 'abcdef')],
  ['secret', true, 'is garbage', path => writeFileSync(path, Buffer.alloc(64, 0xfe))],
]
