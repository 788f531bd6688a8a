/**
 * Compares the simulator with the service. A trace of requests goes to the running service, one after another. Then it goes
 * through the simulator, with the times at which Redis saw the requests. Difficulties, refusals and results must be equal,
 * all of them.
 *
 * The service has one worker: which of several workers gets a connection is for the kernel to decide.
 */

import { existsSync } from 'node:fs'
import { Redis } from 'ioredis'
import { type Address, formatAddress } from '../../src/domain/address.ts'
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

export interface Agreement {
  readonly requests: number
  readonly limited: number
  /** Different bits that were asked for. */
  readonly bits: readonly number[]
  /** What differed, one line each. */
  readonly differences: readonly string[]
}

const SLOT_MS = 50
const MINUTE_MS = 60_000
/** No two requests are a whole window apart, where a millisecond would decide. */
const SHIFT_MS = 17
const BASE = 16
const SEEN_MS = 60_000
const EXCHANGED = ':{load}:'
const ADMITTED = ':l:'

/** People, an address that asks too often, wrong counters alone and among right ones, and a /48 in bursts. */
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
    return luck < 0.5 && slotMs % MINUTE_MS < 20_000 ? visit(owner.get(draw.below(owner.count)), 'right') : []
  }).flat()
}

/** Takes `seconds`, and needs the built service. Throws ToolError if it is not built. */
export async function compareWithService(seconds: number, seed: number): Promise<Agreement> {
  if (!existsSync(new URL('../../dist/main.js', import.meta.url)))
    throw new ToolError('run npm run build first')
  const env = {
    POWGATE_WORKERS: '1',
    POWGATE_TRUSTED_PROXIES: '127.0.0.1',
    // A busy machine may miss the usual deadline; such a request is answered 503, and Redis may never see it.
    POWGATE_STORE_DEADLINE_MS: '5000',
  }
  const service = await TestService.start('redis', env)
  const redis = new Redis(service.redis!.url)
  const monitor = await redis.monitor()
  try {
    const { siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: 28 } })
    const client = new Client(service.url)
    await client.challenge(siteKey) // from then on, the worker knows the site
    const seen: { readonly atMs: number; readonly isRequest: boolean }[] = []
    monitor.on('monitor', (time: string, args: string[], source: string) => {
      const isRequest = args.some(arg => arg.includes(ADMITTED))
      if (source === 'lua' || !(isRequest || args.some(arg => arg.includes(EXCHANGED)))) return
      seen.push({ atMs: Math.floor(Number(time) * 1000), isRequest })
    })
    const requests: Request[] = []
    const startMs = performance.now()
    for (const visit of traceOf(seconds, seed)) {
      const earlyMs = startMs + visit.atMs - performance.now()
      if (earlyMs > 0) await new Promise(resolve => setTimeout(resolve, earlyMs))
      requests.push(...(await requested(client, siteKey, visit)))
    }
    // What Redis tells comes on a connection of its own, perhaps after the last answer.
    const isSeen = () => seen.filter(({ isRequest }) => isRequest).length >= requests.length
    await eventually(SEEN_MS, 'Redis tells of all requests', async () => isSeen())
    return await compared(requests, seen)
  } finally {
    for (const connection of [monitor, redis]) connection.disconnect()
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
  seen: readonly { readonly atMs: number; readonly isRequest: boolean }[],
): Promise<Agreement> {
  const times = seen.filter(({ isRequest }) => isRequest)
  if (times.length !== requests.length)
    throw new ToolError(`${requests.length} requests, but Redis saw ${times.length}`)
  const clock = { nowMs: 0 }
  const simulated = new Service(clock, 1, BASE)
  const challenges = new Map<Address, Challenge>()
  const differences: string[] = []
  let index = 0
  for (const { atMs, isRequest } of seen) {
    clock.nowMs = atMs
    if (!isRequest) {
      await simulated.exchange()
      continue
    }
    const request = requests[index++]!
    const answer = decided(simulated, request, challenges)
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

function decided(
  simulated: Service,
  { address, work }: Request,
  challenges: Map<Address, Challenge>,
): string {
  if (work === undefined) {
    const answer = simulated.challenge(address, 0)
    if ('retryAfterMs' in answer) return 'limited'
    challenges.set(address, answer)
    return String(answer.bits)
  }
  const challenge = challenges.get(address)
  if (challenge === undefined) return 'no challenge'
  return simulated.verify(address, 0, { challenge, isRight: work === 'right', fingerprint: FINGERPRINT })
    .status
}
