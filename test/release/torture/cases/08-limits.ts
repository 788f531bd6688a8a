/**
 * The limits over HTTP, with bursts and steady streams near them, while clocks are wrong and workers are killed. With Redis,
 * one host is 5 s ahead of the store and one 5 s behind. On the embedded store the wall clock of all workers steps.
 */

import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CONTRACT_LIMITS } from '../../../../src/domain/endpoint.ts'
import { Client } from '../../../harness/client.ts'
import { visitorAddress } from '../../../harness/load/addresses.ts'
import type { Random } from '../../../harness/random.ts'
import { RedisServer } from '../../../harness/redis.ts'
import type { TestService, TestSite } from '../../../harness/service.ts'
import { untilReady } from '../../../proxy/observer.ts'
import type { History } from '../history.ts'
import { fateOf, limitBreaches } from '../limit-history.ts'
import { EASY } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { JSON_TYPE, Pool, requestText } from '../wire.ts'
import { Killer } from './04-worker-kill.ts'

/** More than three windows, on each store. */
const SECONDS = 200
const BOUNDED_SHARE = 0.5
/** Every window is a minute. */
const WAIT_SECONDS_MAX = 60
/** Greatest share of all calls with an unknown outcome. In a few seconds each kill is a large part of them. */
const UNKNOWN_MAX = { full: 0.05, bounded: 0.3 } as const
const KILL_EVERY_MS = 5000
/** With Redis, another check of the hosts comes first, and takes about as long. */
const KILLS_FROM_MS = 7000
const STEP_EVERY_MS = 7000
const CONNECTIONS = 48
/** The first visitors are those of the bursts and streams. */
const WAITERS_FROM = 1000

/** Only the store's clock may count. So fail open is off: on a busy machine, workers must not bridge an outage. */
const STRICT = {
  POWGATE_FAIL_OPEN: 'none',
  POWGATE_STORE_DEADLINE_MS: '5000',
  POWGATE_TRUSTED_PROXIES: '127.0.0.1',
}

type Kind = 'challenge' | 'verify' | 'redeem'
const KINDS: readonly Kind[] = ['challenge', 'verify', 'redeem']

export const limits: TortureCase = {
  number: 8,
  name: 'limits',
  aim: 'no 60 s window above a limit, no refusal without one, who waits for Retry-After is admitted; clocks 5 s apart, workers killed',
  fullSize:
    '200 s on each store: 40 addresses, 4 sites, 4 API keys, bursts and streams around the limits; 4 workers, one killed every 5 s; hosts 5 s ahead and 5 s behind Redis, a wall clock that steps by 5 s on the embedded store',
  async run(run) {
    const [first, second] = [run.random.fork(), run.random.fork()]
    await run.each(
      [() => onRedis(run.part('redis'), first), () => onEmbedded(run.part('embedded'), second)],
      onStore => onStore(),
    )
  },
}

async function onRedis(run: Run, random: Random): Promise<void> {
  const redis = await RedisServer.start()
  run.defer(() => redis.stop())
  const start = async (env: Record<string, string>, workers: number) => {
    const settings = { ...STRICT, ...env, POWGATE_WORKERS: String(workers), REDIS_URL: redis.url }
    return run.service('embedded', settings)
  }
  const [ahead, behind, exact] = await Promise.all([
    start({ ...fakeTime(), FAKETIME: '+5s' }, run.count(2, 1)),
    start({ ...fakeTime(), FAKETIME: '-5s' }, run.count(2, 1)),
    start({}, 1),
  ])
  const later = await hostsApart(run, { ahead, exact, behind })
  const killsAfter = later()
  const scene = {
    history: run.history('limits-redis'),
    services: [ahead, behind],
    move: () => {},
    killsAfter,
  }
  await Promise.all([killsAfter, load(run, random, scene)])
  for (const service of [ahead, behind, exact]) await service.stop()
}

async function onEmbedded(run: Run, random: Random): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'powgate-clock-'))
  run.defer(() => rmSync(directory, { recursive: true }))
  const clock = join(directory, 'clock')
  /** @param skew of the wall clock, as "+5s"; timers are not affected */
  const step = (skew: string) => writeFileSync(clock, `${skew}\n`)
  step('+0s')
  const service = await run.service('embedded', {
    ...STRICT,
    ...fakeTime(),
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: '1',
    POWGATE_WORKERS: String(run.count(4, 2)),
  })
  let steps = 0
  const move = () => step(['+5s', '+0s', '-5s', '+0s'][steps++ % 4]!)
  const killsAfter = sleep(KILLS_FROM_MS)
  await load(run, random, { history: run.history('limits-embedded'), services: [service], move, killsAfter })
  await clockSteps(run, service, step)
  await service.stop()
}

/** libfaketime (the Debian package `faketime`), which gives a service's processes wrong clocks. */
function fakeTime(): { LD_PRELOAD: string; FAKETIME_DONT_FAKE_MONOTONIC: string } {
  const paths = readdirSync('/usr/lib').map(folder => `/usr/lib/${folder}/faketime/libfaketime.so.1`)
  const library = paths.find(path => existsSync(path))
  if (library === undefined) throw new Error('libfaketime is not there: apt-get install faketime')
  return { LD_PRELOAD: library, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

interface Scene {
  readonly history: History
  readonly services: readonly TestService[]
  /** Moves the clock. */
  readonly move: () => void
  /** What a worker that is killed would disturb. */
  readonly killsAfter: Promise<void>
}

async function load(run: Run, random: Random, scene: Scene): Promise<void> {
  const { history, services, move, killsAfter } = scene
  const sites = await Promise.all(
    Array.from({ length: 4 }, () => services[0]!.createSite({ difficulty: EASY })),
  )
  const pools = services.map(({ port }) => new Pool({ port, connections: CONNECTIONS, timeoutMs: 15_000 }))
  run.defer(() => pools.forEach(pool => void pool.close()))
  const seconds = run.seconds(SECONDS, BOUNDED_SHARE)
  const endAt = performance.now() + seconds * 1000
  const waits = { challenge: 0, verify: 0, redeem: 0 }
  const stage: Stage = { sites, pools, endAt, history, waits }
  const killer = new Killer(random.fork(), services)
  const stops = [run.every(Math.min(STEP_EVERY_MS, (seconds * 1000) / 5), move)]
  killsAfter.then(
    () => {
      if (performance.now() > endAt) return
      killer.kill()
      stops.push(run.every(Math.min(KILL_EVERY_MS, (seconds * 1000) / 6), () => killer.kill()))
    },
    () => {}, // the case fails by it
  )
  const agents = Array.from({ length: run.count(40, 16) }, (_, index) => agent(stage, index, random.fork()))
  const waiters = KINDS.map(async (kind, index) => {
    const own = random.fork()
    const site = await services[0]!.createSite({ difficulty: EASY })
    await waiter(run, stage, own, { kind, site, address: visitorAddress(WAITERS_FROM + index) })
  })
  await Promise.all([...agents, ...waiters])
  for (const stop of stops) stop()
  for (const pool of pools) pool.close()
  const waited = KINDS.reduce((sum, kind) => sum + waits[kind], 0)
  const how = `${Math.round(seconds)} s, ${killer.kills} workers killed, ${waited} clients waited`
  judge(run, stage, how)
  run.check(killer.kills > 0 || seconds * 1000 < 2 * KILLS_FROM_MS, 'no worker was killed')
  // A window is a minute: a short run ends before a refused client may try again.
  if (!run.isFull) return
  for (const kind of KINDS) run.check(waits[kind] > 0, `nobody was admitted to ${kind} after Retry-After`)
}

interface Stage {
  readonly sites: readonly TestSite[]
  readonly pools: readonly Pool[]
  readonly endAt: number
  readonly history: History
  /** How many clients were admitted after waiting as the refusal said. */
  readonly waits: Record<Kind, number>
}

function judge(run: Run, { history }: Stage, how: string): void {
  // Without a connection, no request was sent.
  const calls = history.calls.filter(({ outcome }) => outcome !== 'failed')
  const { exceeded, wronglyRefused, filled, refused } = limitBreaches(calls, limitOf)
  run.size(`${calls.length.toLocaleString('en-US')} requests in ${how}`)
  run.figure('outcomes', JSON.stringify(history.counts).replaceAll('"', ''))
  run.figure('limits that were reached', filled)
  for (const breach of exceeded) run.check(false, `above the limit: ${breach}`)
  for (const refusal of wronglyRefused) run.check(false, `refused without need: ${refusal}`)
  run.check(filled > 0 && refused > 0, 'no limit was reached')
  // Of calls with an unknown outcome, nothing can be judged.
  const unknown = calls.filter(call => fateOf(call) === 'unknown').length / calls.length
  const most = run.count(UNKNOWN_MAX.full, UNKNOWN_MAX.bounded)
  run.check(unknown <= most, `of ${(unknown * 100).toFixed(0)} % it is not known what became`)
  run.none(
    'strange answers',
    calls.filter(({ status }) => ![0, 200, 400, 429, 503].includes(status)),
  )
}

/** What a request is for, and from which address. */
interface Subject {
  readonly kind: Kind
  readonly site: TestSite
  readonly address: string
}

function limitOf(label: string): number {
  const [kind, of] = label.split(' ')
  const limits: Readonly<Record<string, readonly [ofAddress: number, ofSiteOrKey: number]>> = {
    challenge: [CONTRACT_LIMITS.challengeAddress, CONTRACT_LIMITS.challengeAddressSite],
    verify: [CONTRACT_LIMITS.verifyAddress, CONTRACT_LIMITS.verifyAddressSite],
    redeem: [CONTRACT_LIMITS.redeemAddress, CONTRACT_LIMITS.redeemApiKey],
  }
  return limits[kind!]![of === 'address' ? 0 : 1]
}

function labelsOf({ kind, address, site: { siteKey } }: Subject): string[] {
  const second = kind === 'redeem' ? `redeem key ${siteKey}` : `${kind} site ${address} ${siteKey}`
  return [`${kind} address ${address}`, second]
}

/** One address: bursts and streams, each of one kind for one site. */
async function agent(stage: Stage, index: number, random: Random): Promise<void> {
  const address = visitorAddress(index)
  const underWay: Promise<unknown>[] = []
  while (performance.now() < stage.endAt) {
    const kind = random.pick(KINDS)
    const site = random.pick(stage.sites)
    const isBurst = random.chance(0.6)
    const perMinute = (limitOf(labelsOf({ kind, site, address })[1]!) * random.between(50, 160)) / 100
    const count = isBurst ? random.between(2, 70) : random.between(3, 15)
    for (let sent = 0; sent < count && performance.now() < stage.endAt; sent++) {
      underWay.push(ask(stage, { kind, site, address }, random.pick(stage.pools)))
      if (!isBurst) await sleep(60_000 / perMinute)
    }
    await sleep(random.between(0, isBurst ? 4000 : 1000))
  }
  await Promise.all(underWay)
}

/** Alone with its address and its site: sends requests until one is refused, waits as the refusal says, and tries again. */
async function waiter(run: Run, stage: Stage, random: Random, what: Subject): Promise<void> {
  const { kind } = what
  const pool = () => random.pick(stage.pools)
  for (;;) {
    const { ending } = await ask(stage, what, pool())
    if (typeof ending === 'string' || ending.status !== 429) {
      if (performance.now() > stage.endAt) return
      await sleep(20)
      continue
    }
    const seconds = Number(/\r\nretry-after: (\d+)/i.exec(ending.head)?.[1])
    run.check(seconds >= 1 && seconds <= WAIT_SECONDS_MAX, () => `${kind}: Retry-After in ${ending.head}`)
    if (!(performance.now() + seconds * 1000 < stage.endAt)) return
    await sleep(seconds * 1000)
    let again = await ask(stage, what, pool())
    if (again.fate === 'unknown') {
      again = await ask(stage, what, pool())
      // The attempt with the unknown outcome may have used the only free place.
      if (again.fate !== 'admitted') continue
    }
    const isAdmitted = again.fate === 'admitted'
    run.check(isAdmitted, `${kind}: refused after it waited ${seconds} s as it was told`)
    stage.waits[kind]++
  }
}

async function ask({ history }: Stage, what: Subject, pool: Pool) {
  const startedMs = performance.now()
  const ending = await pool.call(requestOf(what))
  const call = history.record(history.calls.length, 0, startedMs, ending, labelsOf(what).join(', '))
  return { ending, fate: fateOf(call) }
}

/** The cheapest request that is charged: its body is invalid. */
function requestOf({ kind, address, site: { siteKey, apiKey } }: Subject): string {
  const forwarded = `X-Forwarded-For: ${address}`
  if (kind === 'challenge') return requestText('GET /challenge', [forwarded, `X-Site-Key: ${siteKey}`])
  const [line, credential] =
    kind === 'verify'
      ? ['POST /verify', `X-Site-Key: ${siteKey}`]
      : ['POST /verify-token', `Authorization: Bearer ${apiKey}`]
  return requestText(line!, [forwarded, credential!, JSON_TYPE], '{}')
}

interface Hosts {
  readonly ahead: TestService
  readonly exact: TestService
  readonly behind: TestService
}

/**
 * Nonces and tokens of a host whose clock is up to 5 s ahead are accepted; those of a host further ahead are accepted only
 * later.
 *
 * @returns the checks that remain, to run at least 5 s later
 */
async function hostsApart(run: Run, { ahead, exact, behind }: Hosts): Promise<() => Promise<void>> {
  const { siteKey, apiKey } = await exact.createSite({ difficulty: EASY })
  const clients = [ahead, exact, behind].map(({ url }) => new Client(url)) as [Client, Client, Client]
  const [onAhead, onExact, onBehind] = clients
  const pairs: [string, Client, Client][] = [
    ['5 s ahead', onAhead, onExact],
    ['5 s ahead of one that is behind', onExact, onBehind],
    ['5 s behind', onBehind, onExact],
    ['10 s behind', onBehind, onAhead],
  ]
  for (const [what, from, to] of pairs) {
    const solution = await from.solved(siteKey, {}, { solveTimeMs: 300 })
    const verified = await to.verify(siteKey, solution)
    run.check(verified.json?.passed === true, `a nonce from a host ${what}: ${verified.text}`)
    // A visitor who comes to two hosts with different clocks has done nothing suspicious.
    const scored = await to.verifyToken(apiKey, { token: verified.json?.token ?? '' })
    run.check(scored.json?.score === 1, `the score with a nonce from a host ${what}: ${scored.text}`)
    const redeemed = await to.verifyToken(apiKey, { token: await from.token(siteKey) })
    run.check(redeemed.status === 200, `a token from a host ${what}: ${redeemed.text}`)
  }
  const solution = await onAhead.solved(siteKey)
  const tooEarly = await onBehind.verify(siteKey, solution)
  run.check(tooEarly.status === 400, `a nonce from a host 10 s ahead: ${tooEarly.status} ${tooEarly.text}`)
  const isRightAtMs = performance.now() + 5500
  run.size('nonces and tokens from hosts 5 s ahead, 5 s behind, 10 s ahead and 10 s behind')
  return async () => {
    await sleep(isRightAtMs - performance.now())
    const later = await onBehind.verify(siteKey, solution)
    run.check(later.json?.passed === true, `the same nonce 5 s later: ${later.text}`)
  }
}

/** What was issued before the wall clock stepped is accepted afterwards; what was used stays used. */
async function clockSteps(run: Run, service: TestService, step: (skew: string) => void): Promise<void> {
  const site = await service.createSite({ difficulty: EASY })
  const { siteKey, apiKey } = site
  const client = new Client(service.url)
  // The last worker that was killed may not have a successor yet.
  await untilReady(service.url, site)
  step('+0s')
  await sleep(50)
  for (const skew of ['+5s', '+0s']) {
    const solution = await client.solved(siteKey)
    const when = `before the clock stepped to ${skew}`
    const [token, spent] = [await client.token(siteKey), await client.token(siteKey)]
    await client.verifyToken(apiKey, { token: spent })
    step(skew)
    await sleep(50)
    const aheadMs = issuedAtMs((await client.challenge(siteKey)).json.nonce) - Date.now()
    const isAhead = aheadMs > 4000 && aheadMs < 5500
    run.check(isAhead === (skew === '+5s'), `the clock stepped to ${skew}, and is ${aheadMs} ms ahead`)
    const verified = await client.verify(siteKey, solution)
    run.check(verified.json?.passed === true, `a nonce from ${when}: ${verified.text}`)
    const redeemed = await client.verifyToken(apiKey, { token })
    run.check(redeemed.status === 200, `a token from ${when}: ${redeemed.text}`)
    for (const again of [spent, token]) {
      const { status, text } = await client.verifyToken(apiKey, { token: again })
      run.check(status === 400, `a token spent ${when}: ${text}`)
    }
    const replayed = await client.verify(siteKey, solution)
    run.check(replayed.status === 400, `a nonce spent ${when}: ${replayed.text}`)
  }
}

/** A nonce starts with its issue time, in steps of 512 ms. */
function issuedAtMs(nonce: string): number {
  return Number.parseInt(nonce.slice(0, 8), 16) * 512 + Date.UTC(2024, 0, 1)
}
