/** GET /metrics: well-formed, equal to what was sent, and of bounded size for any input. */

import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { afterEach, test } from 'node:test'
import { newApiKey, newSiteKey } from '../../src/domain/site.ts'
import { Subject, UNKNOWN_SITE_KEY, wrongCounter } from '../contract/support.ts'
import { Client, HONEST_ENVIRONMENT, solutionOf, solve } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { growth, type Observed, type PrometheusText, seriesOf, startObserved } from '../harness/metrics.ts'
import { leftovers, storePid, workerPids } from '../harness/processes.ts'
import { RawConnection, requestText } from '../harness/raw-http.ts'
import { ALWAYS_EASY, type TestSite } from '../harness/service.ts'
import { numbers } from '../harness/values.ts'

/** `<endpoint> <status> <outcome>` -> how many were sent. */
type Sent = Map<string, number>

/** Limits that few requests reach. Junk, as malformed bodies are, has the same, but of its own. */
const LIMITS_ENV = {
  POWGATE_LIMIT_CHALLENGE_ADDRESS: '5',
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: '3',
  POWGATE_LIMIT_VERIFY_ADDRESS: '3',
  POWGATE_LIMIT_VERIFY_ADDRESS_SITE: '2',
  POWGATE_LIMIT_REDEEM_ADDRESS: '5',
  POWGATE_LIMIT_REDEEM_API_KEY: '8',
}

/** Whatever a test has started ends with it. */
afterEach(async () => {
  for (const server of [...leftovers].reverse()) await server.stop()
})

/** Sends requests that pass, fail, are refused, and are limited by every limit of LIMITS_ENV. */
async function sendAll({ client, site, url }: Subject, other: TestSite): Promise<Sent> {
  const sent: Sent = new Map()
  /** Each comes from an address of its own unless it is told which. @returns the last answer */
  const send = async (count: number, what: string, ask: (from: string) => Promise<Answer>, from?: string) => {
    sent.set(what, (sent.get(what) ?? 0) + count)
    let answer: Answer | undefined
    for (let index = 0; index < count; index++) {
      answer = await ask(from ?? freshAddress())
      assert.equal(String(answer.status), what.split(' ')[1], `${what}: ${answer.text}`)
    }
    return answer!
  }
  const challenge = (siteKey: string) => (from: string) => client.challenge(siteKey, { from })
  const verify =
    (body: unknown, { siteKey } = site) =>
    (from: string) =>
      client.verify(siteKey, body, { from })
  const redeem = (apiKey: string, body: unknown) => (from: string) =>
    client.verifyToken(apiKey, body, { from })
  const at =
    (path: string, method = 'GET') =>
    (from: string) =>
      call(url + path, { method, from })

  await send(4, 'challenge 403 site-unknown', challenge(UNKNOWN_SITE_KEY))
  await send(2, 'challenge 405 method-not-allowed', at('/challenge', 'POST'))
  await send(2, 'other 200 ok', at('/challenge', 'OPTIONS'))
  await send(5, 'other 404 not-found', at('/challenge/'))
  await send(3, 'content 200 ok', at('/widget.js'))
  const limited = freshAddress()
  await send(3, 'challenge 200 ok', challenge(site.siteKey), limited)
  await send(4, 'challenge 429 rate-limited', challenge(site.siteKey), limited) // its limit at the site
  await send(2, 'challenge 200 ok', challenge(other.siteKey), limited)
  await send(3, 'challenge 429 rate-limited', challenge(other.siteKey), limited) // its limit at all sites
  await send(2, 'verify 400 body-shape', verify('{}'), limited)
  await send(3, 'verify 429 rate-limited', verify('{}'), limited) // its limit of junk at the site
  await send(1, 'verify 400 body-shape', verify('{}', other), limited)
  await send(2, 'verify 429 rate-limited', verify('{}', other), limited) // its limit of junk at all sites
  await send(5, 'verify-token 400 body-shape', redeem(other.apiKey, '{}'), limited)
  await send(2, 'verify-token 429 rate-limited', redeem(other.apiKey, '{}'), limited) // its address's limit of junk
  await send(3, 'verify-token 400 body-shape', redeem(other.apiKey, '{}'))
  await send(3, 'verify-token 429 rate-limited', redeem(other.apiKey, '{}')) // its key's limit of junk

  /** A visitor whose browser has these flags set. */
  const judge = async (what: string, flags: object, isWrong = false, from = freshAddress()) => {
    const { json } = await send(1, 'challenge 200 ok', challenge(site.siteKey), from)
    const { nonce, difficulty } = json
    const counter = isWrong ? wrongCounter(nonce) : solve(nonce, difficulty)
    const body = { ...solutionOf(nonce, counter), environment: { ...HONEST_ENVIRONMENT, ...flags } }
    return { from, body, answer: await send(1, what, verify(body), from) }
  }
  await judge('verify 200 ok', { noPlugins: true, notificationDenied: true })
  await judge('verify 200 failed', { webdriver: true })
  await judge('verify 200 failed', {}, true)
  const failing = freshAddress()
  for (let count = 0; count < 2; count++) await judge('verify 200 failed', {}, true, failing)
  await judge('verify 429 rate-limited', {}, true, failing) // its limit at the site: a wrong proof is no junk
  const { from, body, answer } = await judge('verify 200 ok', {})
  await send(1, 'verify 400 nonce-used', verify(body), from)
  await send(1, 'verify-token 200 ok', redeem(site.apiKey, { token: answer.json.token }))
  await send(2, 'verify-token 400 token-used', redeem(site.apiKey, { token: answer.json.token }))
  return sent
}

/** Outcomes that are told without asking the store for an operation. */
const WITHOUT_STORE = /^(other|content) | 405 /
const countOf = (sent: Iterable<readonly [string, number]>, isMeant: (what: string) => boolean) =>
  [...sent].filter(([what]) => isMeant(what)).reduce((sum, [, count]) => sum + count, 0)

const answersBetween = (before: PrometheusText, after: PrometheusText) =>
  countOf(growth(before, after), series => series.startsWith('powgate_requests_total'))

test('two workers: a counted load of every endpoint gives exactly equal counters', async () => {
  const observed = await startObserved('embedded', LIMITS_ENV)
  const subject = new Subject()
  await subject.prepare(observed.service)
  const other = await subject.createSite()
  const before = await observed.scrape()
  const sent = await sendAll(subject, other)
  const requests = countOf(sent, () => true)
  const after = await eventually(60_000, 'both workers told their counts', async () => {
    const scraped = await observed.scrape()
    return answersBetween(before, scraped) >= requests ? scraped : undefined
  })
  checkAnswers(sent, before, after)
  checkJudgements(sent, before, after)
  checkStore(sent, before, after)
  await checkAborts(observed)
  await checkProcesses(observed)
})

function checkAnswers(sent: Sent, before: PrometheusText, after: PrometheusText): void {
  const grown = growth(before, after)
  const grownOf = (name: string) => new Map([...grown].filter(([series]) => series.startsWith(name)))
  const expected = [...sent].map(([what, count]) => {
    const [endpoint = '', status = '', outcome = ''] = what.split(' ')
    return [seriesOf('powgate_requests_total', { endpoint, status, outcome }), count] as const
  })
  assert.deepEqual(grownOf('powgate_requests_total'), new Map(expected))
  for (const endpoint of ['challenge', 'verify', 'verify-token', 'content', 'other']) {
    const timed = grown.get(seriesOf('powgate_request_duration_seconds_count', { endpoint }))
    const count = countOf(sent, what => what.startsWith(`${endpoint} `))
    assert.equal(timed, count, `timed answers of ${endpoint}`)
  }
  // `sendAll` says at each limit which it is.
  const limits = numbers(
    'challenge address-site: 4, challenge address: 3, verify address-site: 1, verify junk: 5, verify-token junk: 5',
  )
  const limited = Object.entries(limits).map(([what, count]) => {
    const [endpoint = '', policy = ''] = what.split(' ')
    return [seriesOf('powgate_rate_limited_total', { endpoint, policy }), count] as const
  })
  assert.deepEqual(grownOf('powgate_rate_limited_total'), new Map(limited))
}

function checkJudgements(sent: Sent, before: PrometheusText, after: PrometheusText): void {
  const change = (name: string, labels = {}) => {
    const grown = after.value(name, labels) - before.value(name, labels)
    return Math.round(grown * 100) / 100
  }
  const challenges = sent.get('challenge 200 ok')!
  assert.equal(change('powgate_challenge_difficulty_count', { puzzle: 'sha256' }), challenges)
  const reasons = after
    .samples('powgate_score_reasons_total')
    .map(({ name, labels }) => [labels.reason, change(name, labels)])
  const expected = { noPlugins: 1, notificationDenied: 1, webdriver: 1, 'proof-wrong': 3 }
  assert.deepEqual(Object.fromEntries(reasons.filter(([, count]) => count !== 0)), expected)
  // A wrong proof has no score.
  const below = (le: string) => change('powgate_verification_score_bucket', { le })
  assert.deepEqual(['0.39', '0.49', '0.79', '0.89', '+Inf'].map(below), [0, 1, 1, 2, 3])
  assert.equal(change('powgate_verification_score_sum'), 0.4 + 0.85 + 1) // webdriver, the two lesser flags, none
}

function checkStore(sent: Sent, before: PrometheusText, after: PrometheusText): void {
  const change = (name: string) => after.value(name) - before.value(name)
  const operations = countOf(sent, what => !WITHOUT_STORE.test(what))
  const counted = change('powgate_store_batch_operations_sum')
  assert.ok(counted >= operations, `${counted} of ${operations}; the store is probed besides`)
  const calls = change('powgate_store_batch_operations_count')
  assert.equal(change('powgate_store_call_duration_seconds_count'), calls)
  assert.ok(calls > 0 && calls <= counted)
  assert.ok(change('powgate_store_call_duration_seconds_sum') > 0)
  assert.deepEqual([after.value('powgate_store_up'), change('powgate_store_outages_total')], [1, 0])
}

/** Clients that leave in the middle of their bodies are counted, and the time that one takes to send its body is no latency. */
async function checkAborts({ service, scrape }: Observed): Promise<void> {
  const aborted = async () => (await scrape()).value('powgate_requests_aborted_total', { endpoint: 'verify' })
  assert.equal(await aborted(), 0)
  const head = requestText('POST /verify', [`X-Site-Key: site_${'0'.repeat(22)}`, 'Content-Length: 9'])
  const sockets = Array.from({ length: 3 }, () => connect(service.port, '127.0.0.1'))
  for (const socket of sockets) socket.write(`${head}{`)
  const inFlight = async () => (await scrape()).value('powgate_requests_under_way')
  await eventually(60_000, 'three are under way', async () => (await inFlight()) === 3)
  for (const socket of sockets) socket.destroy()
  await eventually(60_000, 'three are gone', async () => (await aborted()) === 3)
  assert.equal(await inFlight(), 0)
  const seconds = async () =>
    (await scrape()).value('powgate_request_duration_seconds_sum', { endpoint: 'verify' })
  const [slow, before] = [await RawConnection.open(service.port), await seconds()]
  await slow.send(`${head}{`)
  const uploadSeconds = 5
  await new Promise(resolve => setTimeout(resolve, uploadSeconds * 1000))
  await slow.send('12345678')
  assert.ok(await slow.answer())
  assert.ok((await seconds()) - before < uploadSeconds - 1, 'a slow upload counts as latency')
}

async function checkProcesses({ service, scrape }: Observed): Promise<void> {
  const metrics = await scrape()
  const labels = (name: string, label: string) =>
    [...new Set(metrics.samples(name).map(sample => sample.labels[label]!))].sort()
  const processes = ['primary', ...(service.redis === undefined ? ['store'] : []), 'worker-0', 'worker-1']
  assert.deepEqual(labels('process_resident_memory_bytes', 'process'), processes)
  assert.deepEqual(labels('powgate_event_loop_lag_seconds', 'worker'), ['0', '1'])
  assert.deepEqual(labels('powgate_event_loop_lag_seconds', 'stat'), ['max', 'mean', 'p99'])
  assert.equal(metrics.value('powgate_workers'), 2)
  for (const { value } of metrics.samples('process_resident_memory_bytes')) assert.ok(value > 1e7)
  assert.deepEqual(labels('powgate_build_info', 'node'), [process.version])
  assert.deepEqual(labels('powgate_build_info', 'process'), processes)
  const value = (name: string, label?: string) => metrics.value(name, label ? { process: label } : {})
  assert.ok(Math.abs(Date.now() / 1000 - value('process_start_time_seconds')) < 600)
  assert.ok(value('process_cpu_seconds_total') > 0.1)
  const max = /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${service.pid}/limits`, 'latin1'))![1]
  for (const process of processes) assert.equal(value('process_max_fds', process), Number(max))
  const files = workerPids(service.pid).map(pid => readdirSync(`/proc/${pid}/fd`).length)
  for (const [index, count] of files.entries())
    assert.ok(Math.abs(value('process_open_fds', `worker-${index}`) - count) < 20) // the load's connections end meanwhile
}

test('the store goes away and comes back: up is 0, then 1, and each worker counts one outage', async () => {
  const { service, scrape } = await startObserved('redis')
  const up = async () => (await scrape()).value('powgate_store_up')
  await eventually(60_000, 'up', async () => (await up()) === 1)
  await service.redis!.kill()
  await eventually(60_000, 'down', async () => (await up()) === 0)
  const downBy = async (cause: string) => (await scrape()).value('powgate_store_down', { cause })
  await eventually(60_000, 'the cause', async () => (await downBy('refused')) === 2)
  assert.equal(await downBy('auth'), 0)
  const logged = /"cause":"nothing listens there [^"]+","msg":"the store (still )?does not answer"/
  await eventually(60_000, 'a line', () => logged.test(service.output))
  const client = new Client(service.url)
  const answer = await client.challenge(`site_${'0'.repeat(22)}`, { from: freshAddress() })
  assert.equal(answer.status, 503)
  await service.redis!.boot()
  await eventually(60_000, 'up again', async () => (await up()) === 1)
  const metrics = await scrape()
  assert.equal(metrics.value('powgate_store_outages_total'), 2)
  assert.equal(metrics.value('powgate_store_down', { cause: 'refused' }), 0)
  const seconds = await eventually(60_000, 'a line of each worker', () => {
    const outages = service.output.matchAll(/"outageSeconds":([\d.]+),"msg":"the store answers"/g)
    const found = Array.from(outages, ([, text]) => Number(text))
    return found.length >= 2 ? found : undefined
  })
  assert.ok(seconds.length === 2 && seconds.every(outage => outage > 0 && outage < 300), `${seconds}`)
  const labels = { endpoint: 'challenge', status: '503', outcome: 'store-unavailable' }
  assert.equal(metrics.value('powgate_requests_total', labels), 1)
  // A worker that has not reached Redis yet knows no evictions, and must not tell 0: what comes later would seem an increase.
  await service.redis!.kill()
  process.kill(workerPids(service.pid)[0]!, 'SIGKILL')
  await eventually(60_000, 'a successor that tells none', async () => {
    const now = await scrape()
    return now.value('powgate_workers') === 2 && now.samples('powgate_store_evicted_keys').length === 1
  })
})

const workerOf = (service: Observed['service'], round: number) => workerPids(service.pid)[round % 2]!
const storeOf = (service: Observed['service']) => storePid(service.pid)!

for (const [what, signal, cause, rounds, victim] of [
  ['a worker that is killed', 'SIGKILL', 'crash', 3, workerOf],
  ['a worker that hangs', 'SIGSTOP', 'hang', 1, workerOf],
  ['a store process that is killed', 'SIGKILL', 'store', 1, storeOf],
] as const)
  test(`${what}: no counter goes down, none is lost or counted twice, its restart is counted`, async () => {
    const { service, scrape } = await startObserved('embedded')
    const { siteKey } = await service.createSite({ difficulty: ALWAYS_EASY })
    const client = new Client(service.url)
    const visits = 40
    const restarts = (metrics: PrometheusText, of: string) =>
      metrics.value('powgate_worker_restarts_total', { cause: of })
    // A worker's clock offset is there once it has asked the store for the time.
    const whole = (metrics: PrometheusText) => {
      const isUp = metrics.value('powgate_workers') === 2 && metrics.value('powgate_store_up') === 1
      return isUp && metrics.samples('powgate_clock_offset_seconds').length === 2 ? metrics : undefined
    }
    let before = await eventually(60_000, 'both workers tell all', async () => whole(await scrape()))
    for (let round = 1; round <= rounds; round++) {
      // Each visit is from an address, hence a connection, of its own, so that both workers get some.
      const visit = () => client.challenge(siteKey, { from: freshAddress() })
      await Promise.all(Array.from({ length: visits }, visit))
      const seen = [await scrape()]
      process.kill(victim(service, round), signal)
      const after = await eventually(90_000, 'the worker is replaced', async () => {
        await new Promise(resolve => setTimeout(resolve, 200)) // a start takes the processors, so does scraping
        const metrics = await scrape()
        seen.push(metrics)
        return restarts(metrics, cause) === round ? whole(metrics) : undefined
      })
      for (const [index, next] of seen.slice(1).entries())
        for (const [series, change] of growth(seen[index]!, next))
          assert.ok(change > 0, `${series} fell by ${-change}`)
      const served = { endpoint: 'challenge', status: '200', outcome: 'ok' }
      assert.equal(after.value('powgate_requests_total', served), round * visits)
      // Series name a worker by its place, which its successor takes.
      assert.deepEqual(after.series, before.series, 'a worker that was replaced has made new series')
      before = after
    }
    for (const other of ['crash', 'hang', 'roll', 'store'])
      assert.equal(restarts(before, other), other === cause ? rounds : 0, other)
  })

const BOUND = 10
const TOO_MANY = 5

/** The primary process relays. The test's connections need no PROXY header, because they come from no address of a proxy. */
const RELAY = { POWGATE_PROXY_PROTOCOL: 'on', POWGATE_TRUSTED_PROXIES: '127.41.0.0/16' }

for (const [name, env] of Object.entries({ 'the HTTP server': {}, 'the PROXY protocol relay': RELAY }))
  test(`${name}: connections are counted, and those above the bound`, async () => {
    const settings = { ...env, POWGATE_WORKERS: '1', POWGATE_CONNECTIONS_MAX: String(BOUND) }
    const { service, scrape } = await startObserved('embedded', settings)
    const counts = async () => {
      const metrics = await scrape()
      const ofWorker = ['', '_max'].map(name => metrics.value(`powgate_connections${name}`, { worker: '0' }))
      return [...ofWorker, metrics.value('powgate_connections_refused_total')].join()
    }
    // The test's own way of asking whether the service is up may still be open.
    await eventually(60_000, 'nobody is there', async () => (await counts()) === `0,${BOUND},0`)
    const sockets = Array.from({ length: BOUND + TOO_MANY }, () =>
      connect({ port: service.port, host: '127.0.0.1', localAddress: freshAddress() }),
    )
    for (const socket of sockets) socket.on('error', () => {})
    const full = `${BOUND},${BOUND},${TOO_MANY}`
    await eventually(60_000, `they are ${full}`, async () => (await counts()) === full)
    for (const socket of sockets) socket.destroy()
    await eventually(60_000, 'they are gone', async () => (await counts()) === `0,${BOUND},${TOO_MANY}`)
    assert.equal(await service.end(), 0)
  })

const FLOOD = 5_000
const SOCKETS = 48

/** Sends requests over one connection, one at a time, until they are used up. Every answer ends with a JSON body. */
async function pump(port: number, next: () => string | undefined): Promise<void> {
  const connection = await RawConnection.open(port)
  for (let request = next(); request !== undefined; request = next())
    assert.match((await connection.request(request))!.body, /\}$/)
  connection.close()
}

const randomText = () => randomBytes(randomInt(1, 30)).toString('base64url')

const forwarded = () => `X-Forwarded-For: ${Array.from({ length: 4 }, () => randomInt(1, 250)).join('.')}`

const MADE_UP = [
  // These are refused before the store is asked.
  () => requestText('GET /challenge', [`X-Site-Key: ${randomText()}"\\{}`]),
  () => requestText(`GET /${randomText()}?${randomText()}`, [`X-Request-Id: ${randomText()}`]),
  () => requestText(`DELETE /verify-token?${randomText()}`, [`Authorization: Bearer ${randomText()}`]),
  // These are refused after the store said that there is no such site, or no such key.
  () => requestText('GET /challenge', [`X-Site-Key: ${newSiteKey(randomBytes(96))}`, forwarded()]),
  () => {
    const key = `Authorization: Bearer ${newApiKey(randomBytes(128))}`
    return requestText('POST /verify-token', [key, 'Content-Type: application/json', forwarded()], '{}')
  },
]

test(`${FLOOD} made-up site keys, API keys, paths and addresses leave no new series behind`, async () => {
  const watched = 'site_ofPOWGATEMETRICSSITES0'
  const env = { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', POWGATE_METRICS_SITES: watched }
  const { service, scrape, adminUrl } = await startObserved('embedded', env)
  const ofWatched = (outcome: string) => ({ site: watched, endpoint: 'challenge', outcome })
  assert.equal((await scrape()).value('powgate_site_requests_total', ofWatched('ok')), 0)
  await new Client(service.url).challenge(watched)
  const flood = async (count: number) => {
    let left = count
    const next = () => (left-- > 0 ? MADE_UP[randomInt(MADE_UP.length)]!() : undefined)
    await Promise.all(Array.from({ length: SOCKETS }, () => pump(service.port, next)))
  }
  await flood(2000)
  const before = await scrape()
  await flood(FLOOD)
  const after = await scrape()
  assert.deepEqual(after.series, before.series)
  assert.equal(answersBetween(before, after), FLOOD)
  for (const labels of [
    { endpoint: 'challenge', outcome: 'site-unknown', status: '403' },
    { endpoint: 'challenge', outcome: 'site-key-malformed', status: '400' },
    { endpoint: 'verify-token', outcome: 'api-key-unknown', status: '401' },
    { endpoint: 'other', outcome: 'not-found', status: '404' },
  ])
    assert.ok(after.value('powgate_requests_total', labels) > FLOOD / 20, `few ${labels.outcome}`)
  assert.equal(after.value('powgate_site_requests_total', ofWatched('site-unknown')), 1)
  const { text } = await call(`${adminUrl}/metrics`)
  assert.ok(text.length < 40_000, `${text.length} characters`) // one series for each request would take ten times as much
})
