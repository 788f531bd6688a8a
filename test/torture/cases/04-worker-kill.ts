/**
 * The races of case 3 while workers are killed. No token may succeed twice. A client that lost the answer of a success gets
 * it again by repeating the request with the same idempotency key.
 */

import { childPids, signalIfThere } from '../../harness/processes.ts'
import { STORE_KINDS, type StoreKind, type TestService } from '../../harness/service.ts'
import { randomOf } from '../bad-inputs.ts'
import type { Call, History } from '../history.ts'
import { attempt, type Race, raceFor, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { openRaceCourse } from './03-single-use.ts'

const TOKENS = 10_000
const RACERS = 64
const TOKENS_AT_ONCE = 4
const KILL_MS = 2000
const KILL_MS_BOUNDED = 700
/** Share of the clients that hang up before their answer. */
const HANGS_UP = 1 / 8
/** Attempt with another key, after the races. If it is refused as used without a known success, an answer was lost. */
const STRANGER = RACERS
/** Most repetitions of one attempt. */
const TRIES_MAX = 200
const RETRY_MS = 50

export const workerKill: TortureCase = {
  number: 4,
  name: 'worker-kill',
  aim: 'no token succeeds twice; every lost success is had again by its idempotency key',
  fullSize:
    '10,000 tokens x 64, of which every eighth hangs up; kill -9 of a random worker of four every 2 s; both stores',
  async run(run) {
    for (const [index, kind] of STORE_KINDS.entries())
      await onStore(run, kind, (index + 0.8) / STORE_KINDS.length)
  },
}

async function onStore(run: Run, kind: StoreKind, share: number): Promise<void> {
  const { service, site, pool } = await openRaceCourse(run, kind, RACERS * TOKENS_AT_ONCE)
  const history = run.history(`worker-kill-${kind}`)
  // A kill rarely loses an answer, so in a bounded run all clients of the first tokens hang up.
  const { seed } = run.random.fork()
  const hangsUp = (subject: number, number: number) =>
    (subject < 3 && !run.isFull) || randomOf(seed, subject * RACERS + number).chance(HANGS_UP)
  const race: Race = { pool, site, history, racers: RACERS, hasKeys: true, hangsUp }
  const mint = await TokenMint.open(service.url, site, run.random.fork())
  const tokens: string[] = []
  const killer = new Killer(run, service)
  const lanes = Array.from({ length: TOKENS_AT_ONCE }, async () => {
    // On a busy machine the time may be over before a worker was killed.
    while (tokens.length < TOKENS && (!run.isOver(share) || killer.kills === 0)) {
      const subject = tokens.push(mint.mint()) - 1
      if (subject % 1000 === 0) run.progress(`${kind}: ${subject} tokens, ${killer.kills} kills`)
      await raceFor(race, subject, tokens[subject]!)
    }
  })
  await Promise.all(lanes)
  killer.stop()
  run.size(`${tokens.length.toLocaleString('en-US')} tokens x ${RACERS} on ${kind}, ${killer.kills} kills`)
  run.check(killer.kills > 0, `${kind}: no worker was killed`)
  run.figure(`outcomes on ${kind}`, JSON.stringify(history.counts))
  const lost = await askAgain(race, tokens)
  run.figure(`lost successes on ${kind}`, lost)
  run.check(lost > 0, `${kind}: no success was lost, so that none could be had again`)
  judge(run, kind, history, tokens.length)
  pool.close()
  await service.stop()
}

/** Kills a random worker at intervals until it is stopped. */
class Killer {
  kills = 0
  readonly #timer: NodeJS.Timeout

  constructor(run: Run, service: TestService) {
    const random = run.random.fork()
    this.#timer = setInterval(
      () => {
        const workers = childPids(service.pid)
        if (workers.length > 0 && signalIfThere(random.pick(workers), 'SIGKILL')) this.kills++
      },
      run.count(KILL_MS, KILL_MS_BOUNDED),
    )
    run.defer(() => this.stop())
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

/** Repeats attempts with unknown outcomes until those are known. Returns how many redeemed tokens had no answered success. */
async function askAgain(race: Race, tokens: readonly string[]): Promise<number> {
  const bySubject = race.history.bySubject()
  let lost = 0
  for (const [subject, calls] of bySubject) {
    if (calls.every(({ outcome }) => outcome !== 'ok')) {
      const stranger = await until(race, subject, tokens[subject]!, STRANGER)
      if (stranger?.code === 'token-used') lost++
    }
    for (const { attempt: number } of calls.filter(isOpen))
      await until(race, subject, tokens[subject]!, number)
  }
  return lost
}

function isOpen({ outcome }: Call): boolean {
  return outcome === 'unknown' || outcome === 'failed'
}

async function until(race: Race, subject: number, token: string, number: number): Promise<Call | undefined> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const call = await attempt(race, subject, token, number, true)
    if (!isOpen(call)) return call
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
  return undefined
}

function judge(run: Run, kind: StoreKind, history: History, tokens: number): void {
  const doubles = history.doubleSuccesses()
  run.check(
    doubles.length === 0,
    `${kind}: redeemed twice: ${doubles.slice(0, 5)} (${doubles.length} in all)`,
  )
  let without = 0
  for (const calls of history.bySubject().values())
    if (calls.every(({ outcome }) => outcome !== 'ok')) without++
  run.check(without === 0, `${kind}: of ${tokens} tokens ${without} have no success, also when asked again`)
  const others = Object.keys(history.counts).filter(name => /^refused (?!token-used)/.test(name))
  run.check(others.length === 0, `${kind}: other refusals: ${others}`)
}
