/**
 * What visitors lose when another Redis takes over: two hosts, Sentinels, and visits as widgets and backends make them. A
 * visit is a challenge, a solution, a form that takes some seconds, and a redemption that is tried again. The tests go on with the
 * servers as the one before has left them; all end with the file.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, solutionOf, solve } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { answerOrWait, freshAddress } from '../harness/http.ts'
import { RedisServer } from '../harness/redis.ts'
import { RedisSentinels } from '../harness/redis-sentinel.ts'
import { DEADLINE_AS_SHIPPED, EASY, TestService } from '../harness/service.ts'

const [VISITS_PER_SECOND, GIVE_UP_MS] = [8, 120_000]
/** How long forms take at most, and for how long visits begin. */
const [FORM_MS_MAX, VISITS_MS] = [8000, 8000]
const DOWN_AFTER_MS = 5000 // as redis.md advises
const MOVED_MS = 1000 // by then the Sentinels have told of a failover
/** For a busy machine, but less than the ten seconds after which a client leaves a demoted primary in any case. */
const MOVED_MS_MAX = 8000

const sentinels = await RedisSentinels.start({ downAfterMs: DOWN_AFTER_MS })
const env = {
  REDIS_URL: sentinels.url,
  ...DEADLINE_AS_SHIPPED,
  POWGATE_FAIL_OPEN_AFTER_SECONDS: '60', // on a busy machine a failover may take longer than the usual ten
}
const hosts = [await TestService.start('shared', env), await TestService.start('shared', env)]
const site = await hosts[0]!.createSite({ difficulty: EASY })
// So that each host knows the site.
for (const host of hosts) assert.notEqual(await visit(host, host, 0), undefined)

test('a failover of another primary that the Sentinels watch interrupts nobody', async () => {
  const other = await RedisServer.start(['--repl-diskless-sync-delay', '0'])
  const replica = await RedisServer.start(['--replicaof', '127.0.0.1', String(other.port)])
  await sentinels.ask('monitor', 'other', '127.0.0.1', String(other.port), '1')
  const failover = () => sentinels.ask('failover', 'other').catch(() => undefined) // refused until they know the replica
  await eventually(PATIENCE_MS, 'a failover has begun', failover)
  const primary = async () => String(await sentinels.ask('get-master-addr-by-name', 'other'))
  await eventually(PATIENCE_MS, 'it is over', async () => (await primary()).endsWith(`,${replica.port}`))
  await sleep(MOVED_MS)
  const cut = /"cause":"(?!no answer within )[^"]*","msg":"the store does not answer"/ // a busy Redis is late now and then
  for (const { output } of hosts) assert.doesNotMatch(output, cut)
})

test('a failover that is asked for: both hosts follow, and a token of before is told as forgotten', async () => {
  const clients = hosts.map(host => new Client(host.url))
  const token = await clients[0]!.token(site.siteKey, { from: freshAddress() })
  const primary = await sentinels.primary()
  await sentinels.failover()
  await eventually(PATIENCE_MS, 'another primary', async () => (await sentinels.primary()) !== primary)
  // A host asked earlier might still redeem the token at the old primary.
  const isReplica = async () => String(await primary.ask('role').catch(() => '')).startsWith('slave')
  await eventually(PATIENCE_MS, 'the old one is a replica', isReplica)
  for (const client of clients) {
    const challenge = () => client.challenge(site.siteKey, { from: freshAddress() })
    await eventually(MOVED_MS_MAX, 'the host has moved', async () => (await challenge()).status === 200)
    const redeem = () => client.verifyToken(site.apiKey, { token })
    const isForgotten = async () => (await redeem()).json.code === 'token-forgotten'
    await eventually(MOVED_MS_MAX, 'the token is told as forgotten', isForgotten)
  }
  await sentinels.untilWhole()
})

test('the primary is killed: of visits that begin within eight seconds none is lost', async t => {
  const primary = await sentinels.primary()
  await primary.kill()
  const killedMs = performance.now()
  const visits: Promise<number | undefined>[] = []
  while (performance.now() - killedMs < VISITS_MS) {
    const [one, other] = visits.length % 2 === 0 ? hosts : hosts.toReversed()
    visits.push(visit(one!, other!, FORM_MS_MAX * ((visits.length % 10) / 10)))
    await sleep(1000 / VISITS_PER_SECOND)
  }
  const tokenMs = await Promise.all(visits)
  const lost = tokenMs.filter(ms => ms === undefined).length
  const waits = tokenMs.flatMap(ms => ms ?? []).sort((a, b) => a - b)
  t.diagnostic(
    `${visits.length} visits, ${lost} lost; token after ${Math.round(waits[waits.length >> 1]!)} ms in the median, ${Math.round(waits.at(-1)!)} at most`,
  )
  assert.equal(lost, 0)
})

/** A visit, of which the backend asks another host. @returns the milliseconds until it had its token; undefined if that was not redeemed */
async function visit(asked: TestService, redeeming: TestService, formMs: number) {
  const from = freshAddress()
  const [client, backend] = [new Client(asked.url), new Client(redeeming.url)]
  const startedMs = performance.now()
  const giveUpMs = startedMs + GIVE_UP_MS
  while (performance.now() < giveUpMs) {
    const challenge = await answerOrWait(() => client.challenge(site.siteKey, { from }))
    if (challenge?.status !== 200) continue
    const { nonce, difficulty } = challenge.json
    const body = solutionOf(nonce, solve(nonce, difficulty))
    let verified = await answerOrWait(() => client.verify(site.siteKey, body, { from }))
    while (verified?.status === 503 && performance.now() < giveUpMs)
      verified = await answerOrWait(() => client.verify(site.siteKey, body, { from }))
    if (verified?.status !== 200) continue
    const tokenMs = performance.now() - startedMs
    await sleep(formMs)
    const redemption = { token: verified.json.token, idempotencyKey: nonce }
    // The token is of the new primary, which the other host may still be finding. Each try waits as a 503's Retry-After says.
    for (let tries = 0; tries < 3; tries++) {
      const redeemed = await answerOrWait(() => backend.verifyToken(site.apiKey, redemption, { from }))
      if (redeemed?.status === 200) return tokenMs
      if (redeemed?.status !== 503) break
    }
    break
  }
  return undefined
}
