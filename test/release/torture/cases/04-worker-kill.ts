/**
 * The races of case 3 while workers are killed. No token may succeed twice. A client that lost the answer of a success gets
 * it again by repeating the request with the same idempotency key.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { signalIfThere, workerPids } from '../../../harness/processes.ts'
import type { Random } from '../../../harness/random.ts'
import { STORE_KINDS, type StoreKind, type TestService } from '../../../harness/service.ts'
import { randomOf } from '../bad-inputs.ts'
import type { Call } from '../history.ts'
import { attempt, isKnown, judgeRedemptions, RACERS, type Race } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { openRaceCourse, raceForTokens } from './03-single-use.ts'

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
      await onStore(run.part(kind), kind, (index + 0.8) / STORE_KINDS.length)
  },
}

async function onStore(run: Run, kind: StoreKind, share: number): Promise<void> {
  // A kill rarely loses an answer, so in a bounded run all clients of the first tokens hang up.
  const { seed } = run.random.fork()
  const hangsUp = (subject: number, number: number) =>
    (subject < 3 && !run.isFull) || randomOf(seed, subject * RACERS + number).chance(HANGS_UP)
  const course = await openRaceCourse(run, kind, 'worker-kill', { hasKeys: true, hangsUp })
  const { service, race, tokens } = course
  const killer = new Killer(run.random.fork(), [service])
  const stop = run.every(run.count(KILL_MS, KILL_MS_BOUNDED), () => killer.kill())
  // On a busy machine the time may be over before a worker was killed.
  await raceForTokens(course, () => run.isOver(share) && killer.kills > 0)
  stop()
  run.size(`${tokens.length.toLocaleString('en-US')} tokens x ${RACERS}, ${killer.kills} kills`)
  run.check(killer.kills > 0, 'no worker was killed')
  const lost = await askAgain(race, tokens)
  run.figure('lost successes', lost)
  run.check(lost > 0, 'no success was lost, so that none could be had again')
  judgeRedemptions(run, race.history, ['token-used'])
  const without = [...race.history.bySubject()].filter(([, calls]) => !hasSuccess(calls))
  run.none(`of ${tokens.length} tokens, without a success, also when asked again`, without)
  await course.close()
}

/** Kills random workers; others are forked in their place. */
export class Killer {
  kills = 0
  readonly #random: Random
  readonly #services: readonly TestService[]

  constructor(random: Random, services: readonly TestService[]) {
    this.#random = random
    this.#services = services
  }

  kill(): void {
    const workers = workerPids(this.#random.pick(this.#services).pid)
    if (workers.length > 0 && signalIfThere(this.#random.pick(workers), 'SIGKILL')) this.kills++
  }
}

const hasSuccess = (calls: readonly Call[]) => calls.some(({ outcome }) => outcome === 'ok')

/** Repeats attempts with unknown outcomes until those are known. Returns how many redeemed tokens had no answered success. */
async function askAgain(race: Race, tokens: readonly string[]): Promise<number> {
  let lost = 0
  for (const [subject, calls] of race.history.bySubject()) {
    const token = tokens[subject]!
    if (!hasSuccess(calls)) {
      const stranger = await untilKnown(race, subject, token, STRANGER)
      if (stranger?.code === 'token-used') lost++
    }
    for (const call of calls) if (!isKnown(call)) await untilKnown(race, subject, token, call.attempt)
  }
  return lost
}

async function untilKnown(
  race: Race,
  subject: number,
  token: string,
  number: number,
): Promise<Call | undefined> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const call = await attempt(race, subject, token, number, true)
    if (isKnown(call)) return call
    await sleep(RETRY_MS)
  }
  return undefined
}
