/** What happens when parts die: workers, Redis, Redis' answers. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, describe, test } from 'node:test'
import { childPids } from '../../bench/http/processes.ts'
import { type Client as ApiClient, Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import { listeningPids } from '../harness/processes.ts'
import { STORE_KINDS, TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'

interface Sample {
  readonly endpoint: 'challenge' | 'verify' | 'verify-token'
  readonly startedMs: number
  readonly tookMs: number
  /** undefined: the connection broke. */
  readonly answer: Answer | undefined
  /** What was asked to be redeemed, at /verify-token. */
  readonly token: string
}

/** A bounded load on all three endpoints, one request of each at a time per lane, until stopped. */
class Load {
  readonly samples: Sample[] = []
  readonly #client: ApiClient
  readonly #site: TestSite
  readonly #spareTokens: string[]
  #isOn = true
  readonly #lanes: Promise<void>[]

  constructor(client: ApiClient, site: TestSite, spareTokens: string[] = []) {
    this.#client = client
    loads.add(this)
    this.#site = site
    this.#spareTokens = spareTokens
    this.#lanes = [
      this.#lane('challenge'),
      this.#lane('challenge'),
      this.#lane('verify'),
      this.#lane('verify-token'),
    ]
  }

  async stop(): Promise<void> {
    loads.delete(this)
    this.#isOn = false
    await Promise.all(this.#lanes)
  }

  async #lane(endpoint: Sample['endpoint']): Promise<void> {
    while (this.#isOn) {
      const startedMs = performance.now()
      const token = endpoint === 'verify-token' ? (this.#spareTokens.pop() ?? 'not a token') : ''
      const answer = await this.#once(endpoint, token).catch(() => undefined)
      this.samples.push({ endpoint, startedMs, tookMs: performance.now() - startedMs, answer, token })
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }

  #once(endpoint: Sample['endpoint'], token: string): Promise<Answer> {
    const from = freshAddress()
    const { siteKey, apiKey } = this.#site
    if (endpoint === 'challenge') return this.#client.challenge(siteKey, { from })
    if (endpoint === 'verify') return this.#client.verify(siteKey, '{}', { from })
    return this.#client.verifyToken(apiKey, { token }, { from })
  }

  since(startedMs: number): Sample[] {
    return this.samples.filter(sample => sample.startedMs >= startedMs)
  }
}

const loads = new Set<Load>()

// A test that failed has not stopped its load, which would keep the whole run waiting.
after(async () => {
  for (const load of loads) await load.stop()
})

/** How many times as long as on an idle machine it takes now to start a process. */
function slowness(): number {
  const IDLE_START_MS = 50
  const startedAtMs = performance.now()
  execFileSync(process.execPath, ['-e', ''])
  return Math.max(1, (performance.now() - startedAtMs) / IDLE_START_MS)
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

async function started(kind: (typeof STORE_KINDS)[number]) {
  const service = await TestService.start(kind, UNLIMITED_REDEMPTIONS)
  const client = new Client(service.url)
  const site = await service.createSite({ difficulty: { base: 16, min: 16, max: 16 } })
  return { service, client, site }
}

async function flow(client: Client, site: TestSite): Promise<Answer> {
  const token = await client.token(site.siteKey, { from: freshAddress() })
  return await client.verifyToken(site.apiKey, { token })
}

/** A worker answers for the sites it has seen; each new connection goes to one of the two at random. */
async function knownToAllWorkers(client: Client, site: TestSite): Promise<void> {
  for (let connection = 0; connection < 40; connection++) {
    assert.equal((await client.challenge(site.siteKey, { from: freshAddress() })).status, 200)
  }
}

for (const kind of STORE_KINDS) {
  test(`kill -9 of a worker under load (${kind}): the service answers on, the worker is back within a second`, async () => {
    const { service, client, site } = await started(kind)
    const backMs = 1000 * slowness()
    const load = new Load(client, site)
    await pause(300)
    const before = childPids(service.pid)
    assert.equal(before.length, 2)
    const killedAt = performance.now()
    process.kill(before[0]!, 'SIGKILL')
    const replacement = await eventually(backMs, 'a new worker', () =>
      childPids(service.pid).find(pid => !before.includes(pid)),
    )
    await eventually(backMs - (performance.now() - killedAt), 'the new worker listens', () =>
      listeningPids(service.port).includes(replacement),
    )
    const backAt = Math.max(killedAt + 1000, performance.now())
    await eventually(60_000, 'requests afterwards', () => load.since(backAt).length > 50)
    await load.stop()
    // Only connections of the killed worker may break; whoever connects afterwards is answered.
    const broken = load.samples.filter(({ answer }) => answer === undefined)
    assert.ok(broken.length <= 8, `${broken.length} requests broke`)
    const afterwards = load.since(backAt)
    assert.deepEqual(new Set(afterwards.map(({ answer }) => statusClass(answer))), new Set(['answered']))
    assert.equal((await flow(client, site)).status, 200)
    await service.stop()
  })
}

function statusClass(answer: Answer | undefined): string {
  return answer !== undefined && answer.status < 500 ? 'answered' : String(answer?.status)
}

test('Redis stopped under load: /verify-token 503 within 300 ms, the others answer; back: normal within 2 s', async () => {
  const { service, client, site } = await started('redis')
  await knownToAllWorkers(client, site)
  const load = new Load(client, site)
  await pause(300)
  const stoppedAt = performance.now()
  await service.redis!.kill()
  await pause(1500)

  const during = load.since(stoppedAt + 50)
  assert.ok(during.length > 100)
  for (const { endpoint, answer, tookMs } of during) {
    assert.ok(answer !== undefined, `${endpoint} broke`)
    assert.ok(tookMs < 300, `${endpoint} took ${tookMs} ms`)
    if (endpoint === 'verify-token') {
      assert.equal(answer.status, 503)
      assert.deepEqual([answer.json.success, answer.json.code], [false, 'unavailable'])
      assert.equal(answer.headers['retry-after'], '1')
    } else {
      assert.equal(answer.status, endpoint === 'challenge' ? 200 : 400)
    }
  }
  // A whole verification goes through meanwhile, and its nonce is spent in the worker that saw it.
  assert.equal(typeof (await client.token(site.siteKey, { from: freshAddress() })), 'string')

  await service.redis!.boot()
  const backAt = performance.now()
  // Its memory is empty; the workers' last known copy of the site serves on.
  await eventually(2000 - (performance.now() - backAt), 'a whole flow', async () => {
    return (await flow(client, site).catch(() => undefined))?.status === 200
  })
  await load.stop()
  await service.stop()
})

test('while Redis is away, limits hold in each worker: limit / workers', async () => {
  const { service, client, site } = await started('redis')
  await knownToAllWorkers(client, site)
  await service.redis!.kill()
  await eventually(1000, 'the loss is noticed', async () => {
    return (await client.verifyToken(site.apiKey, { token: 'x' })).status === 503
  })
  const from = freshAddress()
  let admitted = 0
  for (let index = 0; index < 60; index++) {
    const { status } = await client.challenge(site.siteKey, { from })
    assert.ok(status === 200 || status === 429, String(status))
    if (status === 200) admitted++
  }
  // 30 per address and site, over two workers: 15 in each that was reached.
  assert.ok(admitted >= 15 && admitted <= 30, String(admitted))
  await service.stop()
})

test('POWGATE_FAIL_OPEN=none: everything is 503 while Redis is away', async () => {
  const service = await TestService.start('redis', { POWGATE_FAIL_OPEN: 'none' })
  const client = new Client(service.url)
  const site = await service.createSite()
  assert.equal((await client.challenge(site.siteKey)).status, 200)
  await service.redis!.kill()
  await pause(100)
  assert.equal((await client.challenge(site.siteKey)).status, 503)
  assert.equal((await client.verify(site.siteKey, '{}')).status, 503)
  await service.stop()
})

test('a worker that has never seen the store answers 503', async () => {
  const { service, client, site } = await started('redis')
  await flow(client, site)
  await service.redis!.kill()
  const before = childPids(service.pid)
  for (const pid of before) process.kill(pid, 'SIGKILL')
  await eventually(
    3000 * slowness(),
    'new workers',
    async () => (await client.challenge(site.siteKey).catch(() => undefined))?.status === 503,
  )
  for (let index = 0; index < 20; index++) {
    const { status, headers } = await client.challenge(site.siteKey, { from: freshAddress() })
    assert.equal(status, 503)
    assert.equal(headers['retry-after'], '1')
  }
  await service.stop()
})

test('SIGSTOP of Redis for 3 s: no redemption meanwhile, nothing hangs; then normal', async () => {
  const { service, client, site } = await started('redis')
  const tokens: string[] = []
  for (let index = 0; index < 20; index++)
    tokens.push(await client.token(site.siteKey, { from: freshAddress() }))
  const all = [...tokens]
  await knownToAllWorkers(client, site)
  const frozenAt = performance.now()
  service.redis!.freeze()
  const load = new Load(client, site, tokens)
  await pause(3000)
  service.redis!.thaw()
  const thawedAt = performance.now()
  await eventually(
    2000,
    'a whole flow',
    async () => (await flow(client, site).catch(() => undefined))?.status === 200,
  )
  await load.stop()

  const frozen = load.samples.filter(
    sample => sample.startedMs + sample.tookMs < thawedAt && sample.startedMs > frozenAt,
  )
  assert.ok(frozen.length > 200)
  for (const { endpoint, answer, tookMs } of frozen) {
    assert.ok(answer !== undefined, `${endpoint} broke`)
    assert.ok(tookMs < 300, `${endpoint} took ${tookMs} ms`)
    if (endpoint === 'verify-token') assert.equal(answer.status, 503)
  }
  assert.ok(load.samples.every(({ tookMs }) => tookMs < 1000))
  // Whatever the frozen server executed late: each token redeems at most once, all told.
  for (const token of all) {
    const before = load.samples.filter(
      sample => sample.token === token && sample.answer?.status === 200,
    ).length
    const again = await Promise.all([1, 2].map(() => client.verifyToken(site.apiKey, { token })))
    assert.ok(before + again.filter(({ status }) => status === 200).length <= 1)
  }
  await service.stop()
})

describe('clients that go away', () => {
  for (const kind of STORE_KINDS) {
    test(`aborts at any moment end nothing (${kind})`, async () => {
      const { connect } = await import('node:net')
      const { service, client, site } = await started(kind)
      const body = JSON.stringify({ nonce: '0'.repeat(32), counter: 1, fingerprintHash: '0'.repeat(64) })
      const request = `POST /verify HTTP/1.1\r\nHost: a\r\nX-Site-Key: ${site.siteKey}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      for (let cut = 1; cut <= request.length; cut += 3) {
        await new Promise<void>(resolve => {
          const socket = connect(service.port, '127.0.0.1', () => {
            socket.write(request.slice(0, cut), () => {
              if (cut % 2) socket.resetAndDestroy()
              else socket.destroy()
            })
          })
          socket.on('close', () => resolve())
          socket.on('error', () => {})
        })
      }
      assert.equal((await flow(client, site)).status, 200)
      assert.equal(childPids(service.pid).length, 2)
      assert.ok(!service.output.includes('a worker has gone'), service.output)
      await service.stop()
    })
  }
})
