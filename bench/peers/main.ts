/**
 * `npm run bench:peers`: a verification over HTTP by other services and by this one. Each server has one process on the same core, each
 * request a fresh challenge, and the load is the same: 64 connections, each with one request under way.
 */

import { spawnSync } from 'node:child_process'
import { integer, tell, tool, type Values } from '../../test/harness/command-line.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { startChildServer } from '../child-server.ts'
import { type Figures, figuresOf } from '../http/figures.ts'
import { CONNECTIONS, runLoad } from '../http/prebuilt.ts'
import { startService } from '../http/server.ts'
import { buildTraffic, MARKERS, type Traffic } from '../http/traffic.ts'
import { installPeers, wantedVersions } from '../packages.ts'
import {
  type Cell,
  figure,
  left,
  machine,
  OUTPUT,
  publish,
  rangeNote,
  reportText,
  spreadsOf,
  table,
} from '../report/report.ts'
import { altchaPayload, capSolutions } from './solve.ts'

const OPTIONS = { repeat: integer(5, 1, 100, 'Repetitions, each on a fresh server'), ...OUTPUT }

export const PEERS = tool({
  name: 'bench:peers',
  about: `Measures a verification over HTTP: of @cap.js/server and altcha-lib behind Express, as their documentation starts them, and of
this service with its limits on. Installs the packages into bench/ the first time.`,
  options: OPTIONS,
  example: '--repeat 9',
  details: 'Ends with code 1 if any answer was not the expected one.',
  run: main,
})

interface Service {
  readonly port: number
  /** Process ids of the server; the first does the work. */
  readonly pids: readonly number[]
  readonly traffic: Traffic
  readonly marker: string
  stop(): Promise<void>
}

interface Contender {
  readonly name: string
  readonly checks: string
  readonly start: () => Promise<Service>
}

/** Requests of a repetition, each sent once. Those of peers have to be solved before; one of Cap has 50 puzzles. */
const [OUR_REQUESTS, ALTCHA_REQUESTS, CAP_REQUESTS] = [60_000, 3000, 1000]
/** Puzzles of a challenge, as many as Cap has by default. */
const PUZZLES = 50
/** One hexadecimal digit instead of four, to have puzzles solved: a check costs the same. */
const EASY = 1

const CONTENDERS: readonly Contender[] = [
  {
    name: 'powgate, embedded store',
    checks: 'expiry, address, site, origin, proof, single use, limits, score; signed token',
    start: startOurs,
  },
  {
    name: 'altcha-lib, SHA-256',
    checks: 'signature, expiry, proof of one hash, single use in one process',
    start: startAltcha,
  },
  {
    name: `@cap.js/server, ${PUZZLES} puzzles`,
    checks: `expiry, ${PUZZLES} proofs, single use (read, then delete); token in memory`,
    start: startCap,
  },
]

async function startOurs(): Promise<Service> {
  const service = await startService('embedded')
  const spec = { count: OUR_REQUESTS, target: service.target }
  const traffic = buildTraffic({ ...spec, endpoint: 'verify' })
  const { port, ownPids: pids } = service
  return { port, pids, traffic, marker: MARKERS.verify, stop: () => service.stop() }
}

function startAltcha(): Promise<Service> {
  return startPeer('altcha', [], ALTCHA_REQUESTS, '"error":null', async url => {
    const challenge = (await (await fetch(`${url}/challenge`)).json()) as object
    return ['/verify', { altcha: await altchaPayload(challenge) }]
  })
}

function startCap(): Promise<Service> {
  return startPeer('cap', [String(PUZZLES), String(EASY)], CAP_REQUESTS, '"success":true', async url => {
    const answer = await fetch(`${url}/challenge`, { method: 'POST' })
    const { token } = (await answer.json()) as { token: string }
    return ['/redeem', { token, solutions: capSolutions(token, PUZZLES, EASY) }]
  })
}

/** @param marker a part of each right answer @param solve fetches a challenge, and returns the path and the body of its solution */
async function startPeer(
  name: string,
  args: readonly string[],
  count: number,
  marker: string,
  solve: (url: string) => Promise<[path: string, body: object]>,
): Promise<Service> {
  const entry = new URL('server.mjs', import.meta.url).pathname
  const server = await startChildServer(entry, [name, ...args])
  const requests: Buffer[] = []
  for (let index = 0; index < count; index++) {
    const [path, body] = await solve(`http://127.0.0.1:${server.port}`)
    const json = JSON.stringify(body)
    const head = `POST ${path} HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\nContent-Length: ${json.length}`
    requests.push(Buffer.from(`${head}\r\n\r\n${json}`))
  }
  let end = 0
  const ends = Uint32Array.from(requests, ({ length }) => (end += length))
  const traffic = { count, bytes: Buffer.concat(requests), ends }
  return { port: server.port, pids: [server.pid], traffic, marker, stop: () => server.stop() }
}

/** The share of the requests after which V8 has compiled. */
const WARM_UP_SHARE = 0.4
/** A load ends before that: when its requests are used up. */
const LONG_MS = 600_000

async function measure({ start }: Contender): Promise<Figures> {
  const { port, pids, traffic, marker, stop } = await start()
  try {
    for (const pid of pids) spawnSync('taskset', ['-acp', '0', String(pid)]) // core 0
    const spec = { port, pids, marker, measureMs: LONG_MS }
    const warm = Math.floor(traffic.count * WARM_UP_SHARE)
    await runLoad(spec, { traffic: { ...traffic, count: warm }, next: 0 })
    return figuresOf(await runLoad(spec, { traffic, next: warm }), pids.length)
  } finally {
    await stop()
  }
}

async function main(options: Values<typeof OPTIONS>): Promise<number> {
  installPeers()
  const measured = CONTENDERS.map(contender => ({ contender, runs: [] as Run[] }))
  const tellResults = () => {
    const [rows, versions] = [measured.filter(({ runs }) => runs.length > 0).map(rowOf), wantedVersions()]
    publish(reportOf(rows), { ...machine(), versions, rows }, options)
  }
  stopOnSignal(tellResults)
  for (let round = 0; round < options.repeat; round++) {
    for (const { contender, runs } of measured) {
      const figures = await measure(contender)
      const ours = measured[0]!.runs[round] ?? figures // we come first: in our own turn, these are ours
      runs.push({ ...figures, timesOurs: figures.cpuUs / ours.cpuUs })
      tell(`${round + 1}/${options.repeat} ${contender.name}: ${figures.cpuUs.toFixed(0)} us`)
    }
  }
  tellResults()
  return 0
}

/** `timesOurs`: CPU time against ours of the same repetition. */
type Run = Figures & { readonly timesOurs: number }

type Row = ReturnType<typeof rowOf>

function rowOf({ contender: { name, checks }, runs }: { contender: Contender; runs: readonly Run[] }) {
  return { name, checks, repeat: runs.length, figures: spreadsOf(runs) }
}

function reportOf(rows: readonly Row[]): string {
  const cells: Cell<Row>[] = [
    [left('service'), ({ name }) => name],
    figure('CPU us', 'cpuUs', 0),
    figure('x powgate', 'timesOurs', 1),
    figure('requests/s', 'requestsPerSecond', 0),
    figure('p50 ms', 'latencyP50Ms', 1),
    figure('p99 ms', 'latencyP99Ms', 1),
    [left('checks'), ({ checks }) => checks],
    [left('notes'), ({ figures }) => rangeNote(figures.cpuUs!)],
  ]
  const intro = `Median (range) of ${rows[0]?.repeat ?? 0} repetitions on ${machine().cpu}, Node.js ${process.version}; ${CONNECTIONS} connections, one core for the server.
CPU time of all its threads, garbage collection included. x powgate: within a repetition.`
  return reportText([table('A verification over HTTP', cells, rows), intro])
}
