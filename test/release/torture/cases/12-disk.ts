/**
 * Disks that are full, read-only or damaged, and two services on one data directory. In every case a redeemed token is not
 * redeemed again. Either all sites are there, or the service does not start and prints a line that says why.
 */

import { execFile } from 'node:child_process'
import { cpSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { visitorAddress } from '../../../harness/load/addresses.ts'
import { freePort } from '../../../harness/ports.ts'
import { workerPids } from '../../../harness/processes.ts'
import { TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../../../harness/service.ts'
import {
  Copy,
  fill,
  knownWrecks,
  randomWreck,
  remount,
  SITES_FILE,
  STATE_FILE,
  smallDisk,
  tryBoot,
} from '../disk.ts'
import { EASY, redemptionRequest, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { type Ending, Pool, requestText } from '../wire.ts'

const SITES = 40
/** Of a service of the tests. */
const WORKERS = 2
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
    '300 damaged data directories; disk full, read-only, cut off while it runs; two services on one directory, also from another PID namespace',
  async run(run) {
    await full(run)
    await damaged(run)
    await cutWhileRunning(run)
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
    scene.#configured = await scene.#listing()
    return scene
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
  const statuses = await writeWhileFull(scene)
  const counts = Object.entries(statuses).map(([status, count]) => `${status}: ${count}`)
  run.figure('answers on a full disk', counts.join(', '))
  run.check((statuses['503'] ?? 0) > 0, 'the disk was full and nothing was refused')
  const told = scene.service.output.match(/"the disk is full".*"the store does not answer"/g)?.length ?? 0
  run.check(told >= 1 && told <= WORKERS, `of a full disk the log says ${told} times that the store is away`)
  await workerDiesWhileFull(scene)
  await scene.service.end()
  const start = await tryBoot(scene.service)
  run.check(start.code === 1 && isLine(start.lines, 'full'), `on a full disk it starts with: ${start.lines}`)
  rmSync(filling)
  run.check((await tryBoot(scene.service)).lines === '', 'it does not start when there is room again')
  await scene.checkWhole('after the disk was full')
  const ending = await scene.redeem(scene.mint.mint())
  run.check(statusOf(ending) === 200, `there is room again, but ${JSON.stringify(ending)}`)
  await recoversWithoutRestart(scene, path)
  await readOnly(scene, path)
  run.size('a disk of 6 MiB: full under load, a worker killed, restarted, room made, read-only')
}

/** New visitors, so that the store must grow, and tokens. */
async function writeWhileFull(scene: Scene): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {}
  for (let index = 0; index < 1500; index++) {
    const ending = await scene.challenge(visitorAddress(index))
    const status = String(statusOf(ending))
    statuses[status] = (statuses[status] ?? 0) + 1
    if (index % 50 !== 0) continue
    const token = scene.mint.mint()
    const twice = [statusOf(await scene.redeem(token)), statusOf(await scene.redeem(token))]
    scene.run.check(twice.join() !== '200,200', 'on a full disk a token was redeemed twice')
  }
  scene.checkRefused(await scene.redeem(scene.used), 'on a full disk')
  return statuses
}

async function workerDiesWhileFull({ run, service }: Scene): Promise<void> {
  const before = workerPids(service.pid)
  process.kill(run.random.pick(before), 'SIGKILL')
  const whole = () => {
    const pids = workerPids(service.pid)
    return pids.length === before.length && pids.join() !== before.join()
  }
  await eventually(RECOVERY_MS, 'a worker was replaced on a full disk', whole)
  const pids = workerPids(service.pid).join()
  await sleep(1500)
  run.check(workerPids(service.pid).join() === pids, 'on a full disk a new worker died')
}

async function recoversWithoutRestart(scene: Scene, path: string): Promise<void> {
  const filling = fill(path)
  await writeWhileFull(scene)
  rmSync(filling)
  await eventually(RECOVERY_MS, 'the store takes writes when there is room again', async () => {
    return statusOf(await scene.redeem(scene.mint.mint())) === 200
  })
  await scene.checkWhole('after the disk was full, without a restart')
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
  const known = knownWrecks()
  const wrecks = run.isFull
    ? [...known, ...Array.from({ length: 300 - known.length }, () => randomWreck(run))]
    : Array.from({ length: 8 }, (_, index) => (index < 5 ? run.random.pick(known) : randomWreck(run)))
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

/** A truncated file ends every process that reads its memory map. */
async function cutWhileRunning(run: Run): Promise<void> {
  const all = [
    [STATE_FILE, 0],
    [STATE_FILE, 0.5],
    [SITES_FILE, 0],
    [SITES_FILE, 0.3],
  ] as const
  for (const [file, share] of run.isFull ? all : [run.random.pick(all.slice(0, 2))]) {
    const scene = await Scene.set(run)
    const { service, dataDir } = scene
    const words = `${file} cut to ${share * 100} % while it runs`
    const path = join(dataDir, file)
    const saved = `${path}.copy`
    cpSync(path, saved)
    truncateSync(path, Math.floor(statSync(path).size * share))
    const end = await endOrServe(scene)
    run.figure(words, end === 'ended' ? 'it ended with a line' : 'it refused, or went on')
    if (end === 'ended')
      run.check(/the data are damaged, powgate ends/.test(service.output), `${words}: ended without a line`)
    else await service.end()
    const start = await tryBoot(service)
    if (start.lines === '') {
      run.check(file === STATE_FILE, `${words}: it starts`)
    } else {
      run.check(file === SITES_FILE && isLine(start.lines, dataDir), `${words}: then ${start.lines}`)
      cpSync(saved, path)
      run.check((await tryBoot(service)).lines === '', `${words}: the copy does not start`)
    }
    await scene.checkWhole(words)
    await service.stop()
  }
}

/** Sends requests for a while. The used token must not be redeemed. */
async function endOrServe(scene: Scene): Promise<'ended' | 'serves'> {
  const gone = scene.service.ended().then(() => 'ended' as const)
  for (let index = 0; index < 60; index++) {
    await scene.challenge(visitorAddress(index))
    scene.checkRefused(await scene.redeem(scene.used), 'with a file that was cut off')
    if ((await Promise.race([gone, sleep(50)])) === 'ended') return 'ended'
  }
  return 'serves'
}

/** All processes of one machine share LMDB: two services are like one service with two ports. */
async function twoServices(run: Run): Promise<void> {
  const scene = await Scene.set(run)
  const { service } = scene
  const samePort = await tryBoot(sibling(run, service, service.port))
  const isToldTaken = samePort.code === 1 && samePort.lines.includes('the port is taken')
  run.check(isToldTaken, `a second service on the same port: ${samePort.lines}`)
  const port = await freePort()
  const other = sibling(run, service, port)
  const early = await redeemWhile(scene, async () => {
    run.check((await tryBoot(other)).lines === '', 'a second service does not start')
  })
  for (const token of early) {
    const isRefused = statusOf(await scene.redeem(token, port)) === 400
    run.check(isRefused, 'a token redeemed while the second service started was redeemed again there')
  }
  run.size(`${early.length} tokens redeemed while a second service started`)
  const tokens = run.count(500, 40)
  const ports = [service.port, port, service.port, port]
  for (let count = 0; count < tokens; count++) {
    const token = scene.mint.mint()
    const endings = await Promise.all(ports.map(to => scene.redeem(token, to)))
    const successes = endings.filter(ending => statusOf(ending) === 200).length
    run.check(successes === 1, `two services on one directory: a token was redeemed ${successes} times`)
  }
  run.size(`${tokens} tokens redeemed at two services on one data directory at once`)
  await other.end()
  await scene.checkWhole('after a second service has ended')
  await otherNamespace(scene)
}

/** LMDB would take the processes of another container for dead, and break the files of both. */
async function otherNamespace(scene: Scene): Promise<void> {
  const { run, service } = scene
  const env = { ...service.env, PORT: String(await freePort()) }
  for (const [name, words] of Object.entries({ service: [MAIN], command: [CLI, 'site', 'list'] })) {
    const { code, text } = await inNamespace(words, env)
    const isRefused = code === 1 && text.includes('in use by a service in another container')
    run.check(isRefused, () => `a ${name} in another PID namespace: ${code} ${text}`)
  }
  await scene.checkWhole('after another PID namespace was refused')
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

/** @returns tokens that were redeemed one after the other until `act` had ended, each of which was refused the second time */
async function redeemWhile(scene: Scene, act: () => Promise<void>): Promise<string[]> {
  const { run, mint } = scene
  const tokens: string[] = []
  let isDone = false
  const acting = act().finally(() => {
    isDone = true
  })
  while (!isDone) {
    const token = mint.mint()
    const [first, second] = [await scene.redeem(token), await scene.redeem(token)]
    const isOnce = statusOf(first) === 200 && statusOf(second) === 400
    run.check(isOnce, () => `while a second service started: ${JSON.stringify([first, second])}`)
    tokens.push(token)
    await sleep(5)
  }
  await acting
  return tokens
}

/** Another service with the same settings on another port. */
function sibling(run: Run, { env }: TestService, port: number): TestService {
  const other = TestService.prepare('embedded', { ...env, PORT: String(port) }, port)
  run.defer(() => other.stop())
  return other
}
