/**
 * The races of case 3 while workers are killed: nobody may succeed twice, and whoever lost the answer of a success gets it again
 * by asking again with the same idempotency key.
 */

import { childPids } from '../../../bench/http/processes.ts'
import { STORE_KINDS, type StoreKind, type TestService } from '../../support/service.ts'
import { randomOf } from '../bad-inputs.ts'
import type { Call, History } from '../history.ts'
import { signalIfThere } from '../processes.ts'
import { openRaceCourse } from '../race-course.ts'
import { attempt, type Race, raceFor, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'

const TOKENS = 10_000
const RACERS = 64
const TOKENS_AT_ONCE = 4
const KILL_MS = 2000
const KILL_MS_BOUNDED = 700
/** Of the clients, so many hang up before their answer. */
const HANGS_UP = 1 / 8
/** The number of an attempt with another key, after the races: whether it is refused as used tells whether somebody was told of a success. */
const STRANGER = RACERS
/** Of asking again. */
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
  // A kill loses an answer only now and then. In a short run a success is lost for certain.
  const { seed } = run.random.fork()
  const hangsUp = (subject: number, number: number) =>
    (subject < 3 && !run.isFull) || randomOf(seed, subject * RACERS + number).chance(HANGS_UP)
  const race: Race = { pool, site, history, racers: RACERS, hasKeys: true, hangsUp }
  const mint = await TokenMint.open(service.url, site, run.random.fork())
  const tokens: string[] = []
  const killer = new Killer(run, service)
  const lanes = Array.from({ length: TOKENS_AT_ONCE }, async () => {
    // On a busy machine its time may be over before anybody was killed.
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

/** Kills a worker every now and then until it is stopped. */
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

/** Makes every attempt whose end nobody knows once more, until its end is known. Returns how many tokens had been redeemed and nobody knew. */
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
