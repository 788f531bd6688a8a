/**
 * Compares the simulator with the service. A simulated day fills Redis with the history of a site. A trace of requests goes
 * to the running service, one after another, over connections to two workers. Then the trace goes through the simulator, with
 * the history, and with the workers and the times that Redis saw. Difficulties, refusals and results must be equal, all of
 * them.
 */

import { existsSync } from 'node:fs'
import { Redis } from 'ioredis'
import { type Address, formatAddress } from '../../src/domain/address.ts'
import { SLOT_BYTES, SLOTS } from '../../src/domain/networks.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT, solve } from '../../test/harness/client.ts'
import { ToolError } from '../../test/harness/command-line.ts'
import { eventually } from '../../test/harness/eventually.ts'
import { closeIdleConnections } from '../../test/harness/http.ts'
import { TestService } from '../../test/harness/service.ts'
import type { Challenge } from './policy.ts'
import { Service } from './service.ts'
import { Addresses, Draw } from './world.ts'

type Work = 'none' | 'right' | 'wrong'

interface Visit {
  readonly atMs: number
  readonly address: Address
  readonly work: Work
}

/** A request as the service answered: bits of a challenge, or the result of a verification; 429 is `limited`. */
interface Request {
  readonly address: Address
  /** undefined: a challenge. */
  readonly work?: Work
  readonly answer: string
}

/** A call that Redis saw: a request, or an exchange of what networks bring. */
interface Seen {
  readonly atMs: number
  /** Of an exchange: how many proofs its worker reports. */
  readonly proofs?: number
  /** Of a worker. */
  readonly connection: string
}

export interface Agreement {
  readonly requests: number
  readonly limited: number
  /** Different bits that were asked for. */
  readonly bits: readonly number[]
  /** What differed, one line each. */
  readonly differences: readonly string[]
}

const SLOT_MS = 50
const [SECOND_MS, MINUTE_MS, DAY_MS] = [1000, 60_000, 86_400_000]
const WORKERS = 2
/** Between two visits of the history. */
const STEP_MS = 5000
const CARRIER = new Addresses({ addresses: 250, perNetwork: 250 }, 7)
/** No two requests are a whole window apart, where a millisecond would decide. */
const SHIFT_MS = 17
const BASE = 16
const SEEN_MS = 60_000
const EXCHANGED = ':{load}:networks'
const ADMITTED = ':l:'

/** People, an address that asks too often, wrong counters alone and among right ones, a carrier, and a /48 in bursts. */
function traceOf(seconds: number, seed: number): Visit[] {
  const draw = new Draw(seed)
  const [greedy, wrong, mixed] = [1, 2, 3].map(start => new Addresses({ addresses: 1 }, start).get(0))
  const people = new Addresses({ addresses: 1000 }, 4)
  const owner = new Addresses({ version: 6, addresses: 64, perNetwork: 64 }, 5)
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
      return slotMs % MINUTE_MS < 20_000 ? visit(owner.get(draw.below(owner.count)), 'right') : []
    return luck < 0.65 ? visit(CARRIER.get(draw.below(CARRIER.count)), 'right') : []
  }).flat()
}

/** A day of a site whose people are many, and whose carrier is smaller than in the trace. */
async function historyUntil(endMs: number): Promise<Service> {
  const clock = { nowMs: endMs - DAY_MS }
  const history = new Service(clock, 1, BASE)
  const people = new Addresses({ addresses: 200_000 }, 6)
  const draw = new Draw(1)
  const visit = (address: Address) => {
    const challenge = history.challenge(address, 0)
    if ('bits' in challenge)
      history.verify(address, 0, { challenge, isRight: true, fingerprint: FINGERPRINT })
  }
  for (; clock.nowMs < endMs; clock.nowMs += STEP_MS) {
    visit(people.get(draw.below(people.count)))
    if (draw.share() < 0.3) visit(CARRIER.get(draw.below(CARRIER.count)))
    await history.exchange()
  }
  return history
}

/** As lua/exchange-load-n.lua and lua/exchange-networks-1.lua keep them. */
async function putHistory(redis: Redis, { load, networks }: Service, siteKey: string): Promise<void> {
  const { sinceMs, atMs, rate, usualRate, onceRate, onceUsual } = load!
  const record = Buffer.alloc(48)
  const values = [sinceMs, atMs, rate, usualRate, onceRate, onceUsual]
  for (const [index, value] of values.entries()) record.writeDoubleBE(value, index * 8)
  await redis.set(`pg:{load}:${siteKey}`, record)
  await redis.set('pg:{load}:networks', networks.read(0, (1 + SLOTS) * SLOT_BYTES))
}

/** Takes `seconds`, and needs the built service. Throws ToolError if it is not built. */
export async function compareWithService(seconds: number, seed: number): Promise<Agreement> {
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
  const connections = [redis]
  try {
    const { siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: 28 } })
    const history = await historyUntil(Math.floor(Date.now() / SECOND_MS) * SECOND_MS)
    await putHistory(redis, history, siteKey)
    const client = new Client(service.url)
    const seen: Seen[] = []
    const monitor = await redis.monitor()
    connections.push(monitor)
    monitor.on('monitor', (time: string, args: string[], source: string) => {
      const exchanged = args.findIndex(arg => arg.endsWith(EXCHANGED))
      if (source === 'lua' || (exchanged < 0 && !args.some(arg => arg.includes(ADMITTED)))) return
      const call = { atMs: Math.floor(Number(time) * 1000), connection: source }
      seen.push(exchanged < 0 ? call : { ...call, proofs: Number(args[exchanged + 2]) })
    })
    const requests: Request[] = []
    const startMs = performance.now()
    for (const visit of traceOf(seconds, seed)) {
      const earlyMs = startMs + visit.atMs - performance.now()
      if (earlyMs > 0) await new Promise(resolve => setTimeout(resolve, earlyMs))
      requests.push(...(await requested(client, siteKey, visit)))
    }
    // What Redis tells comes on a connection of its own, perhaps after the last answer.
    const isSeen = () => seen.filter(isRequest).length >= requests.length
    await eventually(SEEN_MS, 'Redis tells of all requests', async () => isSeen())
    return await compared(requests, seen, history)
  } finally {
    for (const connection of connections) connection.disconnect()
    await service.stop()
  }
}

async function requested(client: Client, siteKey: string, { address, work }: Visit): Promise<Request[]> {
  const headers = { 'X-Forwarded-For': formatAddress(address) }
  const challenge = await client.challenge(siteKey, { headers })
  if (challenge.status !== 200) return [{ address, answer: answerOf(challenge) }]
  const { nonce, difficulty } = challenge.json
  const first = { address, answer: String(difficulty) }
  if (work === 'none') return [first]
  const counter = solve(nonce, difficulty) + (work === 'wrong' ? 1 : 0)
  closeIdleConnections() // the service may have closed them during a long solution
  const solution = { nonce, counter, fingerprintHash: FINGERPRINT, environment: HONEST_ENVIRONMENT }
  const verification = await client.verify(siteKey, { ...solution, solveTimeMs: 1 }, { headers })
  return [first, { address, work, answer: answerOf(verification) }]
}

function answerOf({
  status,
  json,
}: {
  readonly status: number
  readonly json: { passed?: boolean }
}): string {
  if (status === 429) return 'limited'
  if (status !== 200) throw new ToolError(`the service answered ${status}: ${JSON.stringify(json)}`)
  return json.passed ? 'passed' : 'failed'
}

/** Lets the simulator decide the same requests at the same times, and exchange loads when the service did. */
async function compared(
  requests: readonly Request[],
  seen: readonly Seen[],
  { load, networks }: Service,
): Promise<Agreement> {
  const count = seen.filter(isRequest).length
  if (count !== requests.length) throw new ToolError(`${requests.length} requests, but Redis saw ${count}`)
  const clock = { nowMs: 0 }
  const simulated = new Service(clock, WORKERS, BASE)
  Object.assign(simulated, { load, networks })
  const connections = [...new Set(seen.map(({ connection }) => connection))]
  if (connections.length !== WORKERS)
    throw new ToolError(`Redis saw ${connections.length} connections of workers`)
  const challenges = new Map<Address, Challenge>()
  const differences: string[] = []
  let index = 0
  for (const call of asWorkersSaw(seen, requests)) {
    clock.nowMs = call.atMs
    const worker = connections.indexOf(call.connection)
    if (!isRequest(call)) {
      await simulated.exchangeOf(worker)
      continue
    }
    const request = requests[index++]!
    const answer = decided(simulated, worker, request, challenges)
    if (answer !== request.answer)
      differences.push(
        `request ${index}, ${formatAddress(request.address)}: ${request.answer}, simulated ${answer}`,
      )
  }
  const answers = requests.map(({ answer }) => answer)
  const bits = [...new Set(answers.map(Number).filter(value => value > 0))].sort((a, b) => a - b)
  const limited = answers.filter(answer => answer === 'limited').length
  return { requests: requests.length, limited, bits, differences }
}

function isRequest({ proofs }: Seen): boolean {
  return proofs === undefined
}

/** A worker may report while Redis' answer to a proof is under way: then the report lacks the proof, and goes before it. */
function asWorkersSaw(seen: readonly Seen[], requests: readonly Request[]): Seen[] {
  const calls: Seen[] = []
  const unreported = new Map<string, Seen[]>()
  let index = 0
  for (const call of seen) {
    const { proofs, connection } = call
    const accepted = unreported.get(connection) ?? []
    const late = proofs === undefined ? undefined : accepted[proofs]
    calls.splice(late === undefined ? calls.length : calls.indexOf(late), 0, call)
    if (proofs !== undefined) unreported.set(connection, accepted.slice(proofs))
    else if (requests[index++]!.answer === 'passed') unreported.set(connection, [...accepted, call])
  }
  return calls
}

function decided(
  simulated: Service,
  worker: number,
  { address, work }: Request,
  challenges: Map<Address, Challenge>,
): string {
  if (work === undefined) {
    const answer = simulated.challenge(address, worker)
    if ('retryAfterMs' in answer) return 'limited'
    challenges.set(address, answer)
    return String(answer.bits)
  }
  const challenge = challenges.get(address)
  if (challenge === undefined) return 'no challenge'
  return simulated.verify(address, worker, { challenge, isRight: work === 'right', fingerprint: FINGERPRINT })
    .status
}
