/** With the most verbose log and an unreliable Redis, no output of the service contains a secret. */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { findLeaks, type NotedSecret, type NotedText } from '../harness/canaries.ts'
import { Client, solutionOf } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { childPids } from '../harness/processes.ts'
import { RedisServer } from '../harness/redis.ts'
import { TestService } from '../harness/service.ts'

const EASY = { difficulty: { base: 16, min: 16, max: 28 } }
const PATIENCE_MS = 60_000

test('no secret comes out: every endpoint with good and bad input, Redis killed and back with another password', async () => {
  const passwords = [0, 1].map(() => `redis-password-${randomBytes(12).toString('base64url')}`)
  const masters = [0, 1].map(() => randomBytes(32).toString('base64'))
  const adminPort = await freePort()
  const redis = await RedisServer.start(['--requirepass', passwords[0]!])
  const service = await TestService.start('embedded', {
    LOG_LEVEL: 'trace',
    REDIS_URL: `redis://:${passwords[0]}@127.0.0.1:${redis.port}/1`,
    POWGATE_SECRETS: masters.join(','),
    POWGATE_ADMIN_PORT: String(adminPort),
    POWGATE_FAIL_OPEN: 'none',
  })
  const client = new Client(service.url)
  const texts: NotedText[] = []
  const secrets: NotedSecret[] = [
    ...passwords.map(text => ({ kind: 'redis password', text }) as const),
    ...masters.map(text => ({ kind: 'master secret', text }) as const),
  ]
  const hear = (answer: Answer) => {
    const { token } = answer.json ?? {}
    if (typeof token === 'string') secrets.push({ kind: 'token', text: token })
    else texts.push({ outlet: 'answer', text: `${answer.text}${JSON.stringify(answer.headers)}` })
    return answer
  }
  try {
    await service.untilReady()
    const { siteKey, apiKey } = await service.createSite(EASY)
    secrets.push({ kind: 'api key', text: apiKey })
    const round = () => everyKindOfRequest(client, siteKey, apiKey, adminPort, hear)
    await round()
    const isUp = async () => (await client.challenge(siteKey, { from: freshAddress() })).status === 200
    // To both workers: so many connections never all go to one.
    const areUp = async () => (await Promise.all(Array.from({ length: 20 }, isUp))).every(Boolean)
    // Redis comes back empty: each worker goes on with the site as it knows it, so it must have seen it.
    await eventually(PATIENCE_MS, 'both workers know the site', areUp)
    await redis.kill()
    await eventually(PATIENCE_MS, 'the outage', async () => !(await isUp()))
    await round()
    await redis.boot(['--requirepass', passwords[1]!])
    await eventually(PATIENCE_MS, 'the old password is refused', () =>
      hasRefusedPassword(redis.port, passwords[1]!),
    )
    await round()
    await redis.kill()
    await redis.boot(['--requirepass', passwords[0]!])
    await eventually(PATIENCE_MS, 'the store is back', areUp)
    await round()
    for (const pid of [service.pid, ...childPids(service.pid)]) {
      texts.push({ outlet: 'command line', text: readFileSync(`/proc/${pid}/cmdline`, 'utf8') })
    }
    assert.equal(
      texts.filter(text => text.outlet === 'command line').length,
      3,
      'the primary and two workers',
    )
    await service.end()
    texts.push({ outlet: 'output', text: service.output })
  } finally {
    await service.stop()
    await redis.stop()
  }
  assert.ok(secrets.filter(({ kind }) => kind === 'token').length >= 2)
  assert.ok(service.output.split('\n{"level"').length > 50, service.output)
  assert.deepEqual(findLeaks(secrets, texts), [])
})

/** One request of every kind that carries a secret, and of many that are refused. */
async function everyKindOfRequest(
  client: Client,
  siteKey: string,
  apiKey: string,
  adminPort: number,
  hear: (answer: Answer) => Answer,
): Promise<void> {
  const from = freshAddress()
  const challenge = hear(await client.challenge(siteKey, { from }))
  for (const wrong of [apiKey, '', `${siteKey}x`, 'site_0000000000000000000000'])
    hear(await client.challenge(wrong, { from }))
  const solution =
    challenge.status === 200 ? await client.solved(siteKey, { from }) : solutionOf('0'.repeat(32))
  const verified = hear(await client.verify(siteKey, solution, { from }))
  const token: string =
    verified.json?.token ?? `1795289826041|${solution.nonce}|1|${'c'.repeat(48)}|${'h'.repeat(43)}`
  for (const body of [
    solution,
    { ...solution, nonce: token },
    { token, apiKey },
    token,
    '',
    `{"${apiKey}":`,
    Buffer.from([0xff]),
    'x'.repeat(9000),
  ])
    hear(await client.verify(siteKey, body, { from }))
  hear(await client.verify(siteKey, solution, { from: freshAddress() }))
  const caller = { from: freshAddress() }
  for (const body of [
    { token, expectedIp: '192.0.2.1' },
    { token, expectedIp: token },
    { token: `${token.slice(0, -2)}AA` },
    { token: apiKey },
    { token, idempotencyKey: apiKey.slice(0, 64) },
    { token, idempotencyKey: apiKey.slice(0, 64) },
    { token },
    token,
  ])
    hear(await client.verifyToken(apiKey, body, caller))
  const inQuery = `?secret=${apiKey}&response=${encodeURIComponent(token)}`
  for (const path of [`/siteverify${inQuery}`, `/siteverify${inQuery}&secret=`, `/none${inQuery}`])
    hear(await client.siteverify('', { ...caller, path }))
  for (const key of [
    `${apiKey}x`,
    `${apiKey.slice(0, -2)}AA`,
    `sk_00000000${apiKey.slice(11)}`,
    token,
    'x y',
  ])
    hear(await client.verifyToken(key, { token }, caller))
  hear(
    await client.verifyToken(apiKey, { token }, { ...caller, headers: { Authorization: `Basic ${apiKey}` } }),
  )
  for (const path of ['/healthz', '/readyz', '/metrics', `/${token}`]) {
    hear(
      await call(`http://127.0.0.1:${adminPort}${encodeURI(path)}`, {
        headers: { Authorization: `Bearer ${apiKey}` },
      }),
    )
  }
}

/** Whether somebody has tried a wrong password on this server. */
async function hasRefusedPassword(port: number, password: string): Promise<boolean> {
  const client = new Redis({ port, host: '127.0.0.1', password })
  try {
    const entries = (await client.acl('LOG')) as unknown[]
    return entries.length > 0
  } finally {
    client.disconnect()
  }
}
