/**
 * Every token is redeemed by many requests at once, through all workers, while workers are killed. No token may succeed twice. A
 * client that lost the answer of a success gets it again by repeating the request with the same idempotency key.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { signalIfThere, workerPids } from '../../../harness/processes.ts'
import { STORE_KINDS, type StoreKind, UNLIMITED_REDEMPTIONS } from '../../../harness/service.ts'
import { randomOf } from '../bad-inputs.ts'
import type { Call } from '../history.ts'
import {
  attempt,
  EASY,
  isKnown,
  judgeRedemptions,
  RACERS,
  type Race,
  raceFor,
  TokenMint,
} from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Pool } from '../wire.ts'

const TOKENS = 10_000
const TOKENS_AT_ONCE = 4
const WORKERS = 4
const TIMEOUT_MS = 20_000
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
  const service = await run.service(kind, {
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_WORKERS: String(WORKERS),
    // The case does not check the usual deadline, which a busy machine may miss.
    POWGATE_STORE_DEADLINE_MS: '5000',
    // Tokens whose answers were lost are redeemed again after the race.
    POWGATE_TOKEN_SECONDS: '3600',
  })
  const site = await service.createSite({ difficulty: EASY })
  const pool = new Pool({ port: service.port, connections: RACERS * TOKENS_AT_ONCE, timeoutMs: TIMEOUT_MS })
  run.defer(() => pool.close())
  const race = { pool, site, history: run.history(`worker-kill-${kind}`), hasKeys: true, hangsUp }
  const mint = await TokenMint.open(service.url, site, run.random.fork())
  const tokens: string[] = []
  const random = run.random.fork()
  let kills = 0
  const stop = run.every(run.count(KILL_MS, KILL_MS_BOUNDED), () => {
    const workers = workerPids(service.pid)
    if (workers.length > 0 && signalIfThere(random.pick(workers), 'SIGKILL')) kills++
  })
  // On a busy machine the time may be over before a worker was killed.
  const lane = async () => {
    while (tokens.length < TOKENS && !(run.isOver(share) && kills > 0)) {
      const subject = tokens.push(mint.mint()) - 1
      if (subject % 1000 === 0) run.progress(`${subject} tokens`)
      await raceFor(race, subject, tokens[subject]!)
    }
  }
  await Promise.all(Array.from({ length: TOKENS_AT_ONCE }, lane))
  stop()
  run.size(`${tokens.length.toLocaleString('en-US')} tokens x ${RACERS}, ${kills} kills`)
  run.check(kills > 0, 'no worker was killed')
  const lost = await askAgain(race, tokens)
  run.figure('lost successes', lost)
  run.check(lost > 0, 'no success was lost, so that none could be had again')
  judgeRedemptions(run, race.history, ['token-used'])
  const without = [...race.history.bySubject()].filter(([, calls]) => !hasSuccess(calls))
  run.none(`of ${tokens.length} tokens, without a success, also when asked again`, without)
  pool.close()
  await service.stop()
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
