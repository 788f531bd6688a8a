/**
 * A million inputs that none of our clients sends: no answer of powgate is a 5xx, and no process ends.
 * Overload protection is off, as in all services that the harness starts. Otherwise most of such a flood would be refused unread
 * with 503, and would test nothing. The full run of case 2 sends odd requests to a service that sheds load.
 */

import { Client, solutionOf } from '../../../harness/client.ts'
import { claimsAt, FREE } from '../../../harness/load/visitors.ts'
import { freePort } from '../../../harness/ports.ts'
import { workerPids } from '../../../harness/processes.ts'
import { v2Header } from '../../../harness/proxy-header.ts'
import type { Random } from '../../../harness/random.ts'
import { RawConnection } from '../../../harness/raw-http.ts'
import { type TestService, type TestSite, UNLIMITED } from '../../../harness/service.ts'
import { Visitors } from '../../../harness/visitors.ts'
import { challengeRequest } from '../../../proxy/observer.ts'
import { type Seen, sendAll } from '../bad-input-lanes.ts'
import { badInput, badProxyInput, type Genuine, randomOf } from '../bad-inputs.ts'
import { type MintedClaims, nonceOf, tokenOf } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'

const INPUTS = 1_200_000
/** Greatest share of inputs for which no connection could be made. */
const UNDELIVERED_MAX = 0.01
const LANES = 400
/** Share of a bounded run's time; the rest is for starting and stopping. */
const SENDING_SHARE = 0.6
const CLIENTS = 250

const PARTS = [
  { name: 'redis', kind: 'redis', hasProxyHeaders: false },
  { name: 'embedded', kind: 'embedded', hasProxyHeaders: false },
  { name: 'PROXY protocol', kind: 'embedded', hasProxyHeaders: true },
] as const
type Part = (typeof PARTS)[number]

export const badInputs: TortureCase = {
  number: 1,
  name: 'bad-inputs',
  aim: 'no 5xx while the store is healthy, no worker exit; honest requests are served',
  fullSize: '1,200,000 inputs: 400,000 on each store, 400,000 behind PROXY protocol headers',
  async run(run) {
    for (const part of PARTS) await runPart(run.part(part.name), part)
  },
}

const clientAddress = (index: number) => `127.40.1.${index % CLIENTS}`
const proxyAddress = (index: number) => `127.41.1.${index % CLIENTS}`

async function runPart(run: Run, part: Part): Promise<void> {
  const adminPort = await freePort()
  const service = await run.service(part.kind, {
    ...UNLIMITED,
    // This case does not check the usual deadline, which a busy machine may miss.
    POWGATE_STORE_DEADLINE_MS: '5000',
    POWGATE_ADMIN_PORT: String(adminPort),
    LOG_LEVEL: 'error',
    ...(part.hasProxyHeaders
      ? { POWGATE_PROXY_PROTOCOL: 'on', POWGATE_TRUSTED_PROXIES: '127.41.0.0/16' }
      : {}),
  })
  const site = await service.createSite({ difficulty: FREE })
  await service.untilReady(service.url, site)
  const workers = workerPids(service.pid)
  const honest = await honestVisitors(service, site, part)
  run.defer(() => honest.stop())
  const { see, statuses } = judging(run)
  const claims = await claimsAt(service.url, site)

  const total = Math.round(INPUTS / PARTS.length)
  const numbersFrom = PARTS.indexOf(part) * 2 ** 24 // so that the inputs of each part have other numbers
  let index = 0
  run.defer(() => {
    index = total // sends nothing more, however the case ends
  })
  const startedAtMs = performance.now()
  const endsAtMs = startedAtMs + run.seconds(Number.POSITIVE_INFINITY, SENDING_SHARE / PARTS.length) * 1000
  const make = part.hasProxyHeaders ? badProxyInput : badInput
  const next = () => {
    if (index >= total || performance.now() > endsAtMs) return undefined
    if (index % 50_000 === 0) run.progress(`${index} inputs`)
    const random = randomOf(run.seed, numbersFrom + index)
    const from = part.hasProxyHeaders ? proxyAddress(index) : clientAddress(index)
    return { index: index++, input: make(random, genuineFrom(random, from, site, claims)), from }
  }
  const undelivered = await sendAll({ port: service.port, lanes: LANES, next, seen: see })
  const seconds = (performance.now() - startedAtMs) / 1000

  run.size(`${index.toLocaleString('en-US')} inputs (${Math.round(index / seconds)} a second)`)
  run.figure('answers', JSON.stringify(statuses).replaceAll('"', ''))
  run.figure('inputs that could not be delivered', undelivered)
  const isDelivered = undelivered < UNDELIVERED_MAX * index
  run.check(isDelivered, `${undelivered} of ${index} inputs could not be delivered`)
  await honest.stop()
  const served = honest.visitors.map(some => some.served)
  run.figure('honest challenges, and whole visits', served.join(' '))
  run.check(!served.includes(0), 'no honest visit came to its end')
  const failed = honest.visitors.flatMap(({ refused }) => refused)
  run.none('honest requests that failed', failed)
  await checkCounters(run, adminPort)
  const left = workerPids(service.pid)
  run.check(left.join() === workers.join(), `the workers were ${workers}, they are ${left}`)
  await service.stop()
  const hasErrors = /"level":"(error|fatal)"/.test(service.output)
  run.check(!hasErrors, `errors in the log:\n${service.output.slice(-2000)}`)
}

/** Tokens and solutions that the service would accept (any counter solves them), if no PROXY header names another address. */
function genuineFrom(random: Random, from: string, site: TestSite, claims: MintedClaims): Genuine {
  return {
    ...site,
    token: () => tokenOf(claims, random),
    solution: () => ({
      ...solutionOf(nonceOf(claims, random, site.siteKey, from), random.below(2 ** 31)),
      solveTimeMs: random.below(5000),
    }),
  }
}

/** Checks what the service itself has counted, including answers that no client awaited. */
async function checkCounters(run: Run, adminPort: number): Promise<void> {
  const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  const sumOf = (pattern: RegExp) =>
    [...metrics.matchAll(pattern)].reduce((sum, [, count]) => sum + Number(count), 0)
  const answers = sumOf(/^powgate_requests_total\{.*\} (\d+)$/gm)
  const errors = sumOf(/^powgate_requests_total\{.*status="5\d\d".*\} (\d+)$/gm)
  const faults = sumOf(/^powgate_faults_total\{.*\} (\d+)$/gm)
  run.figure("answers by the service's own count", answers)
  run.check(answers > 0, 'the service has counted no answer')
  const which = metrics.split('\n').filter(line => /^powgate_requests_total\{.*status="5/.test(line))
  run.check(errors + faults === 0, `the service has counted ${errors} 5xx, ${faults} faults: ${which}`)
}

function judging(run: Run) {
  const statuses: Record<string, number> = {}
  const count = (what: string) => {
    statuses[what] = (statuses[what] ?? 0) + 1
  }
  const see = ({ index, input: { family, parts }, received, isClosed }: Seen) => {
    const note = (what: string) => {
      const [answer, sent] = [JSON.stringify(received).slice(0, 300), JSON.stringify(parts).slice(0, 3000)]
      run.check(false, `input ${index} (${family}): ${what}: ${answer} to ${sent}`)
    }
    if (received === '') return count('none')
    for (const [, status] of received.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
      count(status!)
      // uWebSockets.js' own answer to a request line that it cannot parse: powgate has received no request.
      const isVersionRefusal = status === '505' && received.includes('uWebSockets/20 Server')
      if (status! >= '500' && !isVersionRefusal) note(`an answer with ${status}`)
    }
    // The end of a connection may cut its answer short.
    if (!received.startsWith('HTTP/1.1 ') && !isClosed) note('an answer that is not HTTP/1.1')
  }
  return { see, statuses }
}

/** Ordinary visitors and backends, who must get right answers all the time; in parts with proxies their challenges come through one. */
async function honestVisitors(service: TestService, site: TestSite, { hasProxyHeaders }: Part) {
  const client = new Client(service.url)
  const connection = await RawConnection.open(service.port, hasProxyHeaders ? proxyAddress(7) : '127.0.0.7')
  if (hasProxyHeaders) await connection.send(v2Header({ source: '203.0.113.7' }))
  const challenge = async () => {
    const answer = await connection.request(challengeRequest(site.siteKey))
    if (answer?.status !== 200) throw new Error(`/challenge: ${answer?.status} ${answer?.body}`)
  }
  const visit = async () => {
    const token = await client.token(site.siteKey)
    const { json, text } = await client.verifyToken(site.apiKey, { token, expectedIp: '127.0.0.1' })
    if (json?.success !== true) throw new Error(`/verify-token: ${text}`)
  }
  const visitors = [new Visitors(challenge), new Visitors(visit)]
  const stop = async () => {
    await Promise.all(visitors.map(some => some.stop()))
    connection.close()
  }
  return { visitors, stop }
}
