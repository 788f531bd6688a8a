/**
 * Compares the simulator with the service. A simulated day makes the meters of a site, which are written into Redis. A trace
 * of requests goes to the running service, one after another, over connections to two workers. Then the trace goes through
 * the simulator, with the same meters and times as Redis saw. All difficulties, refusals and results must be equal.
 */

import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface, type Interface } from 'node:readline'
import { Redis } from 'ioredis'
import { type Address, formatAddress } from '../../src/addresses/address.ts'
import { keptMs, METER_BYTES, writeMeter } from '../../src/domain/meters.ts'
import { checkProof } from '../../src/domain/pow.ts'
import { Client, solutionOf, solve } from '../../test/harness/client.ts'
import { ToolError } from '../../test/harness/command-line.ts'
import { eventually } from '../../test/harness/eventually.ts'
import { type Answer, closeIdleConnections } from '../../test/harness/http.ts'
import { TEST_SECRET, TestService } from '../../test/harness/service.ts'
import { type Challenge, SITE, SimulatedService } from './service.ts'
import { Addresses, Draw } from './world.ts'

type Work = 'none' | 'right' | 'wrong'

interface Visit {
  readonly atMs: number
  readonly address: Address
  readonly work: Work
}

/** A request as the service answered: bits of a challenge, or how a verification ended. */
interface Request {
  readonly address: Address
  /** undefined: a challenge. */
  readonly work?: Work
  readonly answer: string
}

/** A request that reached Redis, which tells the simulator its time. */
interface Seen {
  readonly atMs: number
  /** The client address of a worker's connection. */
  readonly connection: string
}

const SLOT_MS = 50 // of the trace, with one visit or none
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000]
const WORKERS = 2
const HISTORY_STEP_MS = 5000 // between two visits of the day before the trace
/** The second argument of Addresses is the plan's number: each is used once in this file. */
const CARRIER = new Addresses({ addresses: 250, perNetwork: 250 }, 7)
/** Added in each minute of the trace: of two requests exactly a limit's minute apart, a millisecond would decide. Any few ms do. */
const SHIFT_MS = 17
const BASE = 16
const SEEN_MS = 60_000 // for Redis to tell of all requests
/** Begins the name of an address log. Requests come one after another, so each has a script call of its own, with the log among its keys. */
const ADMITTED = ':l:'
/** A line of MONITOR: seconds, the database, and who sent the command: a client's address, or `lua` for one within a script. */
const MONITORED = /^\+([\d.]+) \[\d+ (\S+)\]/

/**
 * Draws who comes in a slot, in this order: one who asks too often, wrong counters alone or among right ones, people, a /48 in bursts of
 * twenty seconds a minute, a carrier. The numbers are shares of the slots, added up; the rest, about a third, stay empty.
 */
function traceOf(seconds: number, seed: number): Visit[] {
  const draw = new Draw(seed)
  const [greedy, wrong, mixed] = [1, 2, 3].map(start => new Addresses({ addresses: 1 }, start).get(0))
  const people = new Addresses({ addresses: 1000 }, 4)
  const bursting = new Addresses({ version: 6, addresses: 64, perNetwork: 64 }, 5)
  return Array.from({ length: (seconds * 1000) / SLOT_MS }, (_, slot): Visit[] => {
    const slotMs = slot * SLOT_MS
    const atMs = slotMs + Math.floor(slotMs / MINUTE_MS) * SHIFT_MS
    const luck = draw.share()
    const visit = (address: Address, work: Work) => [{ atMs, address, work }]
    if (luck < 0.25) return visit(greedy!, 'none')
    if (luck < 0.29) return visit(wrong!, 'wrong')
    if (luck < 0.32) return visit(mixed!, draw.share() < 0.3 ? 'wrong' : 'right')
    if (luck < 0.35) return visit(people.get(draw.below(people.count)), 'right')
    if (luck < 0.5)
      return slotMs % MINUTE_MS < 20_000 ? visit(bursting.get(draw.below(bursting.count)), 'right') : []
    return luck < 0.65 ? visit(CARRIER.get(draw.below(CARRIER.count)), 'right') : []
  }).flat()
}

/** A day of a site whose people are many, and whose carrier is smaller than in the trace. */
function historyUntil(endMs: number): SimulatedService {
  const clock = { nowMs: endMs - DAY_MS }
  const history = new SimulatedService(clock, { base: BASE }, TEST_SECRET)
  const people = new Addresses({ addresses: 200_000 }, 6)
  const draw = new Draw(1)
  const visit = (address: Address) => {
    const challenge = history.challenge(address)
    if ('bits' in challenge) history.verify(address, { challenge, isRight: true })
  }
  for (; clock.nowMs < endMs; clock.nowMs += HISTORY_STEP_MS) {
    visit(people.get(draw.below(people.count)))
    if (draw.share() < 0.3) visit(CARRIER.get(draw.below(CARRIER.count)))
  }
  return history
}

/** Writes meters as lua/visits/meters.lua does. */
async function putMeters(redis: Redis, { meters }: SimulatedService, siteKey: string): Promise<void> {
  const pipeline = redis.pipeline()
  for (const [name, meter] of meters) {
    const record = Buffer.alloc(METER_BYTES)
    writeMeter(record, 0, meter)
    const key = `pg:{0}:${name.replace(SITE.siteKey, siteKey)}`
    pipeline.set(key, record, 'PXAT', Math.floor(meter.atMs + keptMs(meter)))
  }
  await pipeline.exec()
}

/** Takes `seconds`, and needs the built service. Throws ToolError if it is not built. */
export async function compareWithService(seconds: number, seed: number) {
  if (!existsSync(new URL('../../dist/main.js', import.meta.url)))
    throw new ToolError('run npm run build first')
  const env = {
    POWGATE_WORKERS: String(WORKERS),
    POWGATE_TRUSTED_PROXIES: '127.0.0.1',
    // A busy machine may miss the usual deadline; such a request is answered 503, and Redis may never see it.
    POWGATE_STORE_DEADLINE_MS: '5000',
  }
  const service = await TestService.start('redis', env)
  const redis = new Redis(service.redis!.url)
  const monitor = await monitorOf(service.redis!.port)
  try {
    const { siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: 28 } })
    const history = historyUntil(Date.now())
    await putMeters(redis, history, siteKey)
    const client = new Client(service.url)
    const seen: Seen[] = []
    monitor.on('line', line => {
      const [, time, source] = MONITORED.exec(line) ?? []
      if (source === undefined || source === 'lua' || !line.includes(ADMITTED)) return
      seen.push({ atMs: Math.floor(Number(time) * 1000), connection: source })
    })
    const requests: Request[] = []
    const startMs = performance.now()
    for (const visit of traceOf(seconds, seed)) {
      const earlyMs = startMs + visit.atMs - performance.now()
      if (earlyMs > 0) await new Promise(resolve => setTimeout(resolve, earlyMs))
      requests.push(...(await requested(client, siteKey, visit)))
    }
    // What Redis tells comes on a connection of its own, perhaps after the last answer.
    await eventually(SEEN_MS, 'Redis tells of all requests', () => seen.length >= requests.length)
    return compared(requests, seen, history)
  } finally {
    redis.disconnect()
    monitor.close()
    await service.stop()
  }
}

/** The lines of MONITOR. ioredis' own fails if a command is told in one packet with the answer OK. */
async function monitorOf(port: number): Promise<Interface> {
  const socket = connect(port, '127.0.0.1')
  const lines = createInterface(socket)
  lines.once('close', () => socket.destroy())
  socket.write('MONITOR\r\n')
  await once(lines, 'line')
  return lines
}

async function requested(client: Client, siteKey: string, { address, work }: Visit): Promise<Request[]> {
  const headers = { 'X-Forwarded-For': formatAddress(address) }
  const challenge = await client.challenge(siteKey, { headers })
  if (challenge.status !== 200) return [{ address, answer: answerOf(challenge) }]
  const { nonce, difficulty } = challenge.json
  const first = { address, answer: String(difficulty) }
  if (work === 'none') return [first]
  let counter = solve(nonce, difficulty)
  // The next one is right too once in 2^16 times.
  if (work === 'wrong') while (checkProof(nonce, counter, difficulty)) counter++
  closeIdleConnections() // the service may have closed them during a long solution
  const solution = { ...solutionOf(nonce, counter), solveTimeMs: 1 }
  const verification = await client.verify(siteKey, solution, { headers })
  return [first, { address, work, answer: answerOf(verification) }]
}

function answerOf({ status, json }: Answer): string {
  if (status === 429) return 'limited'
  if (json.code === 'expired-nonce') return 'expired'
  if (status !== 200) throw new ToolError(`the service answered ${status}: ${JSON.stringify(json)}`)
  return json.passed ? 'passed' : 'failed'
}

/** Lets the simulator decide the same requests at the same times, those of Redis' clock, by which the service decided. @returns `bits` that were asked for, `differences` a line each */
function compared(requests: readonly Request[], seen: readonly Seen[], history: SimulatedService) {
  if (seen.length !== requests.length)
    throw new ToolError(`${requests.length} requests, but Redis saw ${seen.length}`)
  const clock = { nowMs: 0 }
  const simulated = new SimulatedService(clock, { base: BASE }, TEST_SECRET)
  simulated.meters = history.meters
  const connections = new Set(seen.map(({ connection }) => connection)).size
  if (connections !== WORKERS) throw new ToolError(`Redis saw ${connections} connections of workers`)
  const challenges = new Map<Address, Challenge>()
  const differences: string[] = []
  for (const [index, request] of requests.entries()) {
    clock.nowMs = seen[index]!.atMs
    const answer = decided(simulated, request, challenges)
    const name = `request ${index + 1}, ${formatAddress(request.address)}`
    if (answer !== request.answer) differences.push(`${name}: ${request.answer}, simulated ${answer}`)
  }
  const bits = [...new Set(requests.map(({ answer }) => Number(answer)))].filter(value => value > 0).sort()
  const limited = requests.filter(({ answer }) => answer === 'limited').length
  return { requests: requests.length, limited, bits, differences }
}

function decided(
  simulated: SimulatedService,
  { address, work }: Request,
  challenges: Map<Address, Challenge>,
): string {
  if (work === undefined) {
    const answer = simulated.challenge(address)
    if ('retryAfterMs' in answer) return 'limited'
    challenges.set(address, answer)
    return String(answer.bits)
  }
  const challenge = challenges.get(address)
  if (challenge === undefined) return 'no challenge'
  return simulated.verify(address, { challenge, isRight: work === 'right' }).status
}
