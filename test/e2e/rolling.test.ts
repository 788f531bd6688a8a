/** Upgrades in the middle of the day: workers are renewed, killed and told other secrets while visitors come. */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { childPids, listeningPids } from '../harness/processes.ts'
import { FrontProxy, type ProxyKind } from '../harness/proxies.ts'
import { type StoreKind, TestService } from '../harness/service.ts'
import { STEADY_LOAD_SETTINGS, SteadyLoad, storeEpochOf } from '../harness/steady-load.ts'

const CONNECTIONS = 32
const LOAD_SHARE = 0.6
/** As many rolls, and kills, as meet each worker several times at any moment of its work. */
const ROUNDS = 8
/** The generator shares the machine with what it loads: what it manages alone for a second, it may not later. */
const RATE_MAX = 3000
/** A busy machine is slow; on an idle one a roll takes a second. */
const ROLL_MS_MAX = 120_000

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

async function underLoad(
  context: TestContext,
  kind: StoreKind,
  proxyKind: ProxyKind,
  env: Record<string, string> = {},
) {
  const service = await TestService.start(kind, {
    ...STEADY_LOAD_SETTINGS,
    ...(proxyKind.startsWith('haproxy-') ? { POWGATE_PROXY_PROTOCOL: 'on' } : {}),
    // A pause of a busy machine is no outage.
    POWGATE_STORE_DEADLINE_MS: '10000',
    POWGATE_DRAIN_SECONDS: '10',
    ...env,
  })
  const site = await service.createSite({ difficulty: { base: 16, min: 16, max: 16 } })
  const proxy = await FrontProxy.start(proxyKind, service, '500ms') // a worker is gone when its last connection is
  const storeEpoch = await storeEpochOf(proxy.url, site)
  const load = new SteadyLoad({ port: proxy.port, connections: CONNECTIONS, site, storeEpoch })
  await load.capacity(300) // warms up
  const capacity = await load.capacity(1000)
  const rate = Math.min(RATE_MAX, capacity * LOAD_SHARE)
  load.setRate(rate)
  await pause(300)
  const stop = async () => {
    await load.stop()
    await proxy.stop()
    await service.stop()
  }
  context.after(stop) // also of a test that failed
  return { service, proxy, load, rate, stop }
}

function rollsOf(service: TestService): number {
  return service.output.split('all workers are new').length - 1
}

/** Resolves when all workers are new and the old ones have gone. */
async function roll(service: TestService): Promise<void> {
  const before = new Set(childPids(service.pid))
  const rolls = rollsOf(service)
  process.kill(service.pid, 'SIGHUP')
  await eventually(ROLL_MS_MAX, 'all workers are new', () => rollsOf(service) > rolls)
  const after = childPids(service.pid)
  assert.equal(after.length, before.size)
  assert.ok(after.every(pid => !before.has(pid)))
}

test(`${ROUNDS} rolling restarts at 60 % load behind nginx: no request fails`, async context => {
  const { service, load, rate, stop } = await underLoad(context, 'embedded', 'nginx')
  const startedAtMs = performance.now()
  for (let round = 0; round < ROUNDS; round++) await roll(service)
  const seconds = (performance.now() - startedAtMs) / 1000
  await stop()
  const text = `${load.sent} requests, ${Math.round(rate)}/s meant, ${Math.round(seconds)} s`
  context.diagnostic(`${ROUNDS} rolls: ${text}; ${load.failures.length} failed`)
  assert.deepEqual(load.failures, [], service.output)
  assert.ok(load.answers.redeem > 50 * ROUNDS, text)
})

test('rolling restarts behind HAProxy with the PROXY protocol, on Redis: no request fails', async context => {
  const { service, load, stop } = await underLoad(context, 'redis', 'haproxy-v2')
  for (let round = 0; round < 3; round++) await roll(service)
  await stop()
  context.diagnostic(`3 rolls: ${load.sent} requests, ${load.failures.length} failed`)
  assert.deepEqual(load.failures, [], service.output)
  assert.ok(load.answers.redeem > 100)
})

interface Kill {
  readonly killedAtMs: number
  /** When its process was seen to be no more. */
  readonly goneAtMs: number
  /** Requests that waited for their answers, of either worker. */
  readonly underWay: number
}

test(`${ROUNDS} kills of a worker at 60 % load behind HAProxy: only what it had under way fails`, async context => {
  const { service, load, rate, stop } = await underLoad(context, 'embedded', 'haproxy')
  const kills: Kill[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = await eventually(ROLL_MS_MAX, 'two workers listen', () => {
      const pids = listeningPids(service.port)
      return pids.length === 2 ? pids : undefined
    })
    const pid = before[round % 2]!
    const [killedAtMs, underWay] = [performance.now(), load.underWay]
    process.kill(pid, 'SIGKILL')
    await eventually(ROLL_MS_MAX, 'it is gone', () => !childPids(service.pid).includes(pid))
    kills.push({ killedAtMs, goneAtMs: performance.now(), underWay })
    await pause(200)
  }
  await pause(500)
  await stop()
  const { failures } = load
  const underWay = kills.reduce((sum, kill) => sum + kill.underWay, 0)
  context.diagnostic(
    `${ROUNDS} kills: ${load.sent} requests, ${Math.round(rate)}/s meant; ${failures.length} failed, ${underWay} were under way on both workers`,
  )
  for (const failure of failures) {
    const kill = kills.findLast(({ killedAtMs }) => killedAtMs <= failure.failedAtMs)
    assert.ok(kill !== undefined && failure.sentAtMs <= kill.goneAtMs, JSON.stringify({ failure, kills }))
  }
  for (const { killedAtMs, goneAtMs } of kills) {
    const ofKill = failures.filter(
      ({ sentAtMs, failedAtMs }) => failedAtMs >= killedAtMs && sentAtMs <= goneAtMs,
    )
    assert.ok(ofKill.length <= CONNECTIONS, `${ofKill.length} failed`)
  }
  assert.ok(load.answers.redeem > 50 * ROUNDS)
})
