/**
 * `npm run bench:http -- --host`: what a host meets beside full load. How long it takes to start, what an open connection
 * takes, and CPU time of a request on a connection of its own, of requests that are refused, and with two workers.
 *
 *   for each repetition, store:  start twice, the second time with data -> connections -> each request in turn
 *
 * Here a worker is mostly idle, and wakes up for each request: compare these figures with each other, not with full load.
 */

import { once } from 'node:events'
import { connect } from 'node:net'
import { tell } from '../../test/harness/command-line.ts'
import { processUsage } from '../../test/harness/measure.ts'
import { storePid, workerPids } from '../../test/harness/processes.ts'
import { RawConnection } from '../../test/harness/raw-http.ts'
import { type StoreKind, TestService, UNLIMITED } from '../../test/harness/service.ts'
import { type Cell, left, reportText, right, type Spreads, spreadsOf, table, text } from '../report/report.ts'
import type { Options } from './options.ts'

const IDLE_CONNECTIONS = 4000
/** Each with one request under way. */
const SENDERS = 8
const REQUESTS = 2000

/** Names of figures, with what they count. */
const FIGURES = {
  start: 'start until it listens, ms',
  connection: 'memory of an open connection, KiB',
  kept: 'a challenge on a kept connection, CPU us',
  own: 'a challenge on a connection of its own, CPU us',
  malformed: 'refused, no site key (400), CPU us',
  foreign: 'refused, foreign origin (403), CPU us',
  limited: 'refused, above a limit (429), CPU us',
  twoWorkers: 'a challenge on a kept connection, two workers, CPU us',
} as const
type Figure = keyof typeof FIGURES

interface HostFigures {
  readonly store: StoreKind
  readonly figures: Spreads<Record<Figure, number>>
}

export async function measureHost({ store: stores, repeat }: Options): Promise<HostFigures[]> {
  const runs = stores.map(store => ({ store, all: [] as Record<Figure, number>[] }))
  for (let repetition = 0; repetition < repeat; repetition++) {
    for (const { store, all } of runs) {
      const alone = await withService(store, 1, runAlone)
      const twoWorkers = await withService(store, 2, async (service, siteKey) => {
        return await cpuUs(service, await warmedUp(service, siteKey), 200)
      })
      all.push({ ...alone, twoWorkers })
      tell(`${store}: ${repetition + 1} of ${repeat}`)
    }
  }
  return runs.map(({ store, all }) => ({ store, figures: spreadsOf(all) }))
}

async function withService<Result>(
  store: StoreKind,
  workers: number,
  use: (service: TestService, siteKey: string) => Promise<Result>,
): Promise<Result> {
  const { POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: _, ...unlimited } = UNLIMITED
  const settings = { POWGATE_WORKERS: String(workers), POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', ...unlimited }
  const service = await TestService.start(store, settings)
  try {
    return await use(service, (await service.createSite({ origins: ['https://shop.example'] })).siteKey)
  } finally {
    await service.stop()
  }
}

async function runAlone(service: TestService, siteKey: string) {
  await service.end()
  const startedAtMs = performance.now()
  await service.boot()
  const start = performance.now() - startedAtMs
  const visitor = await warmedUp(service, siteKey)
  return {
    start,
    connection: await connectionKib(service),
    kept: await cpuUs(service, visitor, 200),
    own: await cpuUs(service, visitor, 200, true),
    malformed: await cpuUs(service, requestFrom(), 400),
    foreign: await cpuUs(service, requestFrom(siteKey, 'https://other.example'), 403),
    limited: await cpuUs(service, requestFrom(siteKey, 'https://shop.example', '203.0.113.7'), 429),
  }
}

/** The requests of visitors, to a service that has compiled what answers them. */
async function warmedUp(service: TestService, siteKey: string): Promise<() => string> {
  const visitor = requestFrom(siteKey, 'https://shop.example')
  for (let round = 0; round < 2; round++) await cpuUs(service, visitor, 200)
  return visitor
}

let visitors = 0

/** @returns makes the bytes of a request: of a new visitor each time, unless an address is given */
function requestFrom(siteKey?: string, origin?: string, address?: string): () => string {
  const fixed = [siteKey && `X-Site-Key: ${siteKey}`, origin && `Origin: ${origin}`].filter(Boolean)
  return () => {
    const index = ++visitors
    const from = address ?? `${11 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}.1`
    return `${['GET /challenge HTTP/1.1', 'Host: x', `X-Forwarded-For: ${from}`, ...fixed].join('\r\n')}\r\n\r\n`
  }
}

/** CPU time of all workers, and of the store process, per request. Throws if an answer has another status. */
async function cpuUs(service: TestService, request: () => string, status: number, isOwn = false) {
  const workers = workerPids(service.pid)
  // One address comes so often that only its first requests are below the limit.
  const first = status === 429 ? 100 : 0
  const store = storePid(service.pid)
  const counted = store === undefined ? workers : [...workers, store]
  const usedMs = () => counted.reduce((sum, pid) => sum + processUsage(pid).cpuMs, 0)
  const send = async (count: number, isCounted: boolean) => {
    let connection = await RawConnection.open(service.port)
    for (let sent = 0; sent < count; sent++) {
      if (isOwn && sent > 0) {
        connection.close()
        connection = await RawConnection.open(service.port)
      }
      const answer = await connection.request(request())
      if (isCounted && answer?.status !== status) throw new Error(`expected ${status}, got ${answer?.status}`)
    }
    connection.close()
  }
  await send(first, false)
  const beforeMs = usedMs()
  await Promise.all(Array.from({ length: SENDERS }, () => send(REQUESTS / SENDERS, true)))
  return ((usedMs() - beforeMs) / REQUESTS) * 1000
}

/** Growth of the worker for each connection, of which each has had one answer. */
async function connectionKib(service: TestService): Promise<number> {
  const [worker] = workerPids(service.pid)
  const before = processUsage(worker!).residentBytes
  const sockets = Array.from({ length: IDLE_CONNECTIONS }, () => connect(service.port, '127.0.0.1'))
  for (const socket of sockets) {
    socket.write(requestFrom()())
    await once(socket, 'data')
  }
  const growth = processUsage(worker!).residentBytes - before
  for (const socket of sockets) socket.destroy()
  return growth / IDLE_CONNECTIONS / 1024
}

export function hostReport(found: readonly HostFigures[]): string {
  const stores = found.map(({ store, figures }): Cell<Figure> => {
    return [right(store), name => text(figures[name], name === 'start' ? 0 : 1)]
  })
  const rows = Object.keys(FIGURES) as Figure[]
  return reportText([
    table<Figure>('A host', [[left(''), name => FIGURES[name]], ...stores], rows),
    `Median (range). CPU us: of all workers, per request, ${REQUESTS.toLocaleString('en')} requests of ${SENDERS} connections at a time. The workers are mostly idle, and wake up
for each request: compare these figures with each other, not with those at full load. Memory: growth with ${IDLE_CONNECTIONS.toLocaleString('en')} connections that have had
an answer.`,
  ])
}
