/**
 * Disks that are full, read-only or damaged, and two services on one data directory. In every case a redeemed token is not
 * redeemed again. Either all sites are there, or the service does not start and prints a line that says why.
 */

import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { visitorAddress } from '../../../harness/load/addresses.ts'
import { freePort } from '../../../harness/ports.ts'
import { TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../../../harness/service.ts'
import { Copy, fill, knownWrecks, remount, smallDisk, tryBoot } from '../disk.ts'
import { EASY, redemptionRequest, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { type Ending, Pool, requestText } from '../wire.ts'

const SITES = 40
const DISK_BYTES = 6 * 2 ** 20
const TRUSTING = { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', ...UNLIMITED_REDEMPTIONS }
const RECOVERY_MS = 15_000
/** The first visitors fill the disk. */
const OTHERS_FROM = 10_000
const [MAIN, CLI] = ['main.js', 'cli/main.js'].map(
  name => new URL(`../../../../dist/${name}`, import.meta.url).pathname,
) as [string, string]
/** Longer than a start waits for an owner that has crashed. */
const NAMESPACE_MS = 20_000

export const disk: TortureCase = {
  number: 12,
  name: 'disk',
  aim: 'a clear line; it refuses rather than forgets; sites are never lost',
  fullSize:
    'each way to damage a data directory; disk full, read-only; two services on one directory, also from another PID namespace',
  async run(run) {
    await full(run)
    await damaged(run)
    await twoServices(run)
  },
}

/** A service with sites, a redeemed token and one that is not redeemed. */
class Scene {
  readonly run: Run
  readonly service: TestService
  readonly site: TestSite
  readonly mint: TokenMint
  readonly used: string
  readonly fresh: string
  #configured: string[] = []
  #visitors = 0

  private constructor(run: Run, service: TestService, site: TestSite, mint: TokenMint) {
    this.run = run
    this.service = service
    this.site = site
    this.mint = mint
    this.used = mint.mint()
    this.fresh = mint.mint()
  }

  static async set(run: Run, env: Record<string, string> = {}): Promise<Scene> {
    // Minutes later they must still be refused as used, not as expired.
    const lasting = { POWGATE_TOKEN_SECONDS: '3600' }
    const service = await run.service('embedded', { ...TRUSTING, ...lasting, ...env })
    const site = await service.createSite({ difficulty: EASY })
    for (let count = 1; count < SITES; count++) await service.createSite({ name: `site ${count}` })
    const mint = await TokenMint.open(service.url, site, run.random.fork())
    const scene = new Scene(run, service, site, mint)
    const ending = await scene.redeem(scene.used)
    run.check(statusOf(ending) === 200, `a token was not redeemed: ${JSON.stringify(ending)}`)
    await scene.configured()
    return scene
  }

  /** From now on these must be there. */
  async configured(): Promise<void> {
    this.#configured = await this.#listing()
  }

  get dataDir(): string {
    return this.service.env.POWGATE_DATA_DIR!
  }

  async ask(request: string, port = this.service.port): Promise<Ending> {
    const pool = new Pool({ port, connections: 1, timeoutMs: 10_000 })
    try {
      return await pool.call(request)
    } finally {
      pool.close()
    }
  }

  redeem(token: string, port?: number): Promise<Ending> {
    return this.ask(redemptionRequest(this.site.apiKey, token), port)
  }

  challenge(visitor: string): Promise<Ending> {
    const headers = [`X-Site-Key: ${this.site.siteKey}`, `X-Forwarded-For: ${visitor}`]
    return this.ask(requestText('GET /challenge', headers))
  }

  /** All stored data of all sites and API keys. */
  async #listing(): Promise<string[]> {
    const store = await this.service.openSites()
    try {
      const [sites, keys] = [await store.listSites(), await store.listApiKeys()]
      const areAll = sites.length >= SITES && keys.length >= SITES
      this.run.check(areAll, `${sites.length} sites, ${keys.length} keys`)
      return [...sites, ...keys].map(record => JSON.stringify(record))
    } finally {
      await store.close()
    }
  }

  /** @param words what was done before */
  async checkWhole(words: string): Promise<void> {
    const found = await this.#listing()
    this.run.none(
      `${words}: sites and API keys that are gone`,
      this.#configured.filter(line => !found.includes(line)),
    )
    this.run.none(
      `${words}: sites and API keys that were not there`,
      found.filter(line => !this.#configured.includes(line)),
    )
    const ending = await this.redeem(this.used)
    const isRefused = isTold(ending) && statusOf(ending) !== 200
    this.run.check(isRefused, () => `${words}: a redeemed token: ${JSON.stringify(ending)}`)
    const fresh = await this.redeem(this.fresh)
    this.run.check(isTold(fresh), () => `${words}: a token that nobody redeemed: ${JSON.stringify(fresh)}`)
    await eventually(RECOVERY_MS, 'a visitor is served', () => this.#serves()).catch(error =>
      this.run.check(false, `${words}: ${(error as Error).message}\n${this.service.output.slice(-2000)}`),
    )
  }

  /** One whole flow of a new visitor. */
  async #serves(): Promise<boolean> {
    const from = { headers: { 'X-Forwarded-For': visitorAddress(OTHERS_FROM + (this.#visitors++ % 256)) } }
    const token = await new Client(this.service.url).token(this.site.siteKey, from).catch(() => '')
    return statusOf(await this.redeem(token)) === 200
  }

  checkRefused(ending: Ending, words: string): void {
    this.run.check(statusOf(ending) !== 200, `${words}: a redeemed token was redeemed again`)
  }
}

const statusOf = (ending: Ending) => (typeof ending === 'string' ? ending : ending.status)

/** Redeemed, refused as used or forgotten, or without a known outcome. */
function isTold(ending: Ending): boolean {
  if (typeof ending === 'string') return false
  const { status, code } = ending
  return status === 200 || status === 503 || code === 'token-used' || code === 'token-forgotten'
}

async function full(run: Run): Promise<void> {
  const path = smallDisk(run, DISK_BYTES)
  if (path === undefined) {
    const problem = 'no full and no read-only disk: mounting one needs root with CAP_SYS_ADMIN'
    run.size(problem)
    run.check(!run.isFull, problem)
    return
  }
  const dataDir = join(path, 'data')
  const scene = await Scene.set(run, { POWGATE_DATA_DIR: dataDir })
  const filling = fill(path)
  for (let index = 0; index < 1500; index++) {
    const status = statusOf(await scene.challenge(visitorAddress(index)))
    run.check(status === 200, `on a full disk a challenge is answered ${status}`)
  }
  scene.checkRefused(await scene.redeem(scene.used), 'on a full disk')
  const make = () =>
    scene.service.createSite({ name: 'x'.repeat(100) }).then(
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
  await scene.service.end()
  const start = await tryBoot(scene.service)
  run.check(
    start.lines === '' || isLine(start.lines, 'full'),
    `on a full disk it starts with: ${start.lines}`,
  )
  rmSync(filling)
  if (start.lines !== '')
    run.check((await tryBoot(scene.service)).lines === '', 'it does not start when there is room again')
  await scene.checkWhole('after the disk was full')
  await readOnly(scene, path)
  run.size('a disk of 6 MiB: full under load, restarted, room made, read-only')
}

async function readOnly(scene: Scene, path: string): Promise<void> {
  const { run, service, dataDir } = scene
  await service.end()
  remount(path, 'ro')
  const { lines, code } = await tryBoot(service)
  run.check(code === 1 && isLine(lines, dataDir), `on a read-only disk it starts with: ${lines}`)
  remount(path, 'rw')
  run.check((await tryBoot(service)).lines === '', 'it does not start when the disk takes writes again')
  await scene.checkWhole('after a read-only disk')
  await service.end()
}

/** Whether the output is one readable line about POWGATE_DATA_DIR, with a required word and no stack. */
function isLine(lines: string, word: string): boolean {
  const said = lines.split('\n').filter(line => !line.startsWith('{'))
  return said.length === 1 && said[0]!.startsWith('POWGATE_DATA_DIR: ') && said[0]!.includes(word)
}

/** Every start ends in one of two ways: an error line, or a service that has all its sites and all redemption records. */
async function damaged(run: Run): Promise<void> {
  const scene = await Scene.set(run)
  await scene.service.end()
  // Without a configured secret, the service uses the one in the data directory.
  writeFileSync(join(scene.dataDir, 'secret'), `${scene.service.env.POWGATE_SECRETS}\n`)
  const copy = new Copy(run, scene.dataDir)
  const env = scene.service.env as Record<string, string>
  env.POWGATE_SECRETS = ''
  const wrecks = knownWrecks()
  const ends = { line: 0, serves: 0 }
  for (const wreck of wrecks) {
    if (run.isOver(0.75) && ends.line + ends.serves > 3) break
    copy.putBack()
    wreck.make(scene.dataDir)
    const { lines, code } = await tryBoot(scene.service)
    if (lines === '') {
      ends.serves++
      run.check(!wreck.mustRefuse, `${wreck.words}: it starts`)
      await scene.checkWhole(wreck.words)
      await scene.service.end()
    } else {
      ends.line++
      run.check(code === 1 && isLine(lines, scene.dataDir), `${wreck.words}: it ends with ${code}: ${lines}`)
    }
  }
  copy.putBack()
  run.check((await tryBoot(scene.service)).lines === '', 'the copy does not start')
  await scene.checkWhole('with the copy put back')
  run.size(`${ends.line + ends.serves} damaged data directories: ${ends.line} lines, ${ends.serves} starts`)
  await scene.service.stop()
}

/** Whoever has the socket owns the directory, also across PID namespaces, as of two containers. */
async function twoServices(run: Run): Promise<void> {
  const scene = await Scene.set(run)
  const { service } = scene
  const samePort = await tryBoot(sibling(run, service, service.port))
  const isToldTaken = samePort.code === 1 && samePort.lines.includes('the port is taken')
  run.check(isToldTaken, `a second service on the same port: ${samePort.lines}`)
  const other = await tryBoot(sibling(run, service, await freePort()))
  const isInUse = (text: string) => text.includes(`is in use by the service of process ${service.pid}`)
  run.check(other.code === 1 && isInUse(other.lines), `a second service: ${other.code} ${other.lines}`)
  await scene.checkWhole('after a second service was refused')
  const env = { ...service.env, PORT: String(await freePort()) }
  const refused = await inNamespace([MAIN], env)
  run.check(refused.code === 1 && isInUse(refused.text), () => `in another PID namespace: ${refused.text}`)
  const listed = await inNamespace([CLI, 'site', 'list'], env)
  run.check(listed.text.includes('site 1'), () => `a command in another PID namespace: ${listed.text}`)
  await service.end('SIGKILL')
  const { text } = await inNamespace([MAIN], env)
  run.check(text.includes('powgate listens'), () => `in another PID namespace after a crash: ${text}`)
}

/** Ends what still runs after some seconds, as a service does. */
function inNamespace(words: readonly string[], env: Record<string, string>) {
  const { PATH } = process.env
  const args = ['--fork', '--pid', '--mount-proc', '--kill-child', process.execPath, ...words]
  const options = { env: { PATH, ...env }, timeout: NAMESPACE_MS, killSignal: 'SIGKILL' } as const
  return new Promise<{ readonly code: number | null; readonly text: string }>(resolve => {
    const child = execFile('unshare', args, options, (_, out, err) =>
      resolve({ code: child.exitCode, text: out + err }),
    )
  })
}

/** Another service with the same settings on another port. */
function sibling(run: Run, { env }: TestService, port: number): TestService {
  const other = TestService.prepare('embedded', { ...env, PORT: String(port) }, port)
  run.defer(() => other.stop())
  return other
}
