/** The limits over HTTP, with bursts and steady streams near them, over two hosts on Redis and on the embedded store. Workers are killed. */

import { setTimeout as sleep } from 'node:timers/promises'
import { CONTRACT_LIMITS } from '../../../../src/domain/endpoint.ts'
import { visitorAddress } from '../../../harness/load/addresses.ts'
import type { Random } from '../../../harness/random.ts'
import { RedisServer } from '../../../harness/redis.ts'
import { STORE_KINDS, type StoreKind, type TestService, type TestSite } from '../../../harness/service.ts'
import type { History } from '../history.ts'
import { fateOf, limitBreaches } from '../limit-history.ts'
import { EASY } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { JSON_TYPE, Pool, requestText } from '../wire.ts'
import { Killer } from './04-worker-kill.ts'

/** More than three windows, on each store. */
const SECONDS = 200
const BOUNDED_SHARE = 0.5
const SITES = 4
/** Greatest share of all calls with an unknown outcome. In a few seconds each kill is a large part of them. */
const UNKNOWN_MAX = { full: 0.05, bounded: 0.3 } as const
const KILL_EVERY_MS = 5000
const CONNECTIONS = 48

/** Only the store may count. So fail open is off: on a busy machine, workers must not bridge an outage. */
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
  aim: 'no 60 s window above a limit, no refusal without one, while workers are killed',
  fullSize:
    '200 s on each store: 40 addresses, 4 sites, 4 API keys, bursts and streams around the limits; 4 workers (on Redis those of two hosts), one killed every 5 s',
  async run(run) {
    const stages = STORE_KINDS.map(kind => ({ kind, random: run.random.fork() }))
    await run.each(stages, ({ kind, random }) => onStore(run.part(kind), kind, random))
  },
}

async function hostsOn(run: Run, kind: StoreKind): Promise<TestService[]> {
  const workers = run.count(4, 2)
  if (kind === 'embedded')
    return [await run.service('embedded', { ...STRICT, POWGATE_WORKERS: String(workers) })]
  const redis = await RedisServer.start()
  run.defer(() => redis.stop())
  const env = { ...STRICT, POWGATE_WORKERS: String(workers / 2), REDIS_URL: redis.url }
  return Promise.all([1, 2].map(() => run.service('embedded', env)))
}

interface Stage {
  readonly sites: readonly TestSite[]
  readonly pools: readonly Pool[]
  readonly endAt: number
  readonly history: History
}

async function onStore(run: Run, kind: StoreKind, random: Random): Promise<void> {
  const services = await hostsOn(run, kind)
  const sites: TestSite[] = []
  while (sites.length < SITES) sites.push(await services[0]!.createSite({ difficulty: EASY }))
  const pools = services.map(({ port }) => new Pool({ port, connections: CONNECTIONS, timeoutMs: 15_000 }))
  const closePools = () => pools.forEach(pool => void pool.close())
  run.defer(closePools)
  const seconds = run.seconds(SECONDS, BOUNDED_SHARE)
  const stage = {
    ...{ sites, pools, history: run.history(`limits-${kind}`) },
    endAt: performance.now() + seconds * 1000,
  }
  const killer = new Killer(random.fork(), services)
  const stopKilling = run.every(Math.min(KILL_EVERY_MS, (seconds * 1000) / 6), () => killer.kill())
  const agents = Array.from({ length: run.count(40, 16) }, (_, index) => agent(stage, index, random.fork()))
  await Promise.all(agents)
  stopKilling()
  closePools()
  judge(run, stage, `${Math.round(seconds)} s, ${killer.kills} workers killed`)
  run.check(killer.kills > 0, 'no worker was killed')
  for (const service of services) await service.stop()
}

function judge(run: Run, { history }: Stage, how: string): void {
  // Without a connection, no request was sent.
  const calls = history.calls.filter(({ outcome }) => outcome !== 'failed')
  const { exceeded, wronglyRefused, filled, refused } = limitBreaches(calls, limitOf)
  run.size(`${calls.length.toLocaleString('en-US')} requests in ${how}`)
  run.figure('outcomes', JSON.stringify(history.counts).replaceAll('"', ''))
  run.figure('limits that were reached', filled)
  run.none('above the limit', exceeded)
  run.none('refused without need', wronglyRefused)
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
async function agent({ sites, pools, endAt, history }: Stage, index: number, random: Random): Promise<void> {
  const address = visitorAddress(index)
  const underWay: Promise<unknown>[] = []
  const ask = async (what: Subject) => {
    const startedMs = performance.now()
    const ending = await random.pick(pools).call(requestOf(what))
    history.record(history.calls.length, 0, startedMs, ending, labelsOf(what).join(', '))
  }
  while (performance.now() < endAt) {
    const what = { kind: random.pick(KINDS), site: random.pick(sites), address }
    const isBurst = random.chance(0.6)
    const perMinute = (limitOf(labelsOf(what)[1]!) * random.between(50, 160)) / 100
    const count = isBurst ? random.between(2, 70) : random.between(3, 15)
    for (let sent = 0; sent < count && performance.now() < endAt; sent++) {
      underWay.push(ask(what))
      if (!isBurst) await sleep(60_000 / perMinute)
    }
    await sleep(random.between(0, isBurst ? 4000 : 1000))
  }
  await Promise.all(underWay)
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
