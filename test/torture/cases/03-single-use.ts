/** Every token is redeemed by many requests at once, through all workers: exactly one succeeds. */

import { childPids, connectionsPerProcess } from '../../harness/processes.ts'
import {
  STORE_KINDS,
  type StoreKind,
  type TestService,
  type TestSite,
  UNLIMITED_REDEMPTIONS,
} from '../../harness/service.ts'
import { EASY, type Race, raceFor, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Pool } from '../wire.ts'

const TOKENS = 10_000
const RACERS = 64
const TOKENS_AT_ONCE = 4

export const singleUse: TortureCase = {
  number: 3,
  name: 'single-use',
  aim: 'as many successes as tokens, one each',
  fullSize: '10,000 tokens x 64 redemptions at once, four workers, both stores',
  async run(run) {
    for (const [index, kind] of STORE_KINDS.entries())
      await onStore(run, kind, (index + 1) / STORE_KINDS.length)
  },
}

async function onStore(run: Run, kind: StoreKind, share: number): Promise<void> {
  const { service, site, pool } = await openRaceCourse(run, kind, RACERS * TOKENS_AT_ONCE)
  const history = run.history(`single-use-${kind}`)
  const race: Race = { pool, site, history, racers: RACERS, hasKeys: false }
  const mint = await TokenMint.open(service.url, site, run.random.fork())
  let tokens = 0
  const lanes = Array.from({ length: TOKENS_AT_ONCE }, async () => {
    while (tokens < TOKENS && (tokens === 0 || !run.isOver(share))) {
      const subject = tokens++
      if (subject % 1000 === 0) run.progress(`${kind}: ${subject} tokens`)
      await raceFor(race, subject, mint.mint())
    }
  })
  await Promise.all(lanes)
  const perWorker = connectionsPerProcess(service.port, childPids(service.pid))
  pool.close()
  await service.stop()
  const successes = history.calls.filter(({ outcome }) => outcome === 'ok').length
  const doubles = history.doubleSuccesses()
  run.size(
    `${tokens.toLocaleString('en-US')} tokens x ${RACERS} on ${kind}, connections per worker ${perWorker.join(' ')}`,
  )
  run.figure(`successes on ${kind}`, successes)
  run.check(
    doubles.length === 0,
    `${kind}: tokens redeemed twice: ${doubles.slice(0, 5)} (${doubles.length} in all)`,
  )
  run.check(successes === tokens, `${kind}: ${successes} successes of ${tokens} tokens`)
  run.check(
    perWorker.every(count => count > 0),
    `${kind}: a worker had no connection: ${perWorker}`,
  )
  const { ok, 'refused token-used': used, ...others } = history.counts
  run.check(Object.keys(others).length === 0, `${kind}: other outcomes: ${JSON.stringify(others)}`)
}

const WORKERS = 4
const TIMEOUT_MS = 20_000

interface RaceCourse {
  readonly service: TestService
  readonly site: TestSite
  readonly pool: Pool
}

/** A service with four workers, a site whose redemptions are unlimited, and connections to it; for cases 3 and 4. */
export async function openRaceCourse(run: Run, kind: StoreKind, connections: number): Promise<RaceCourse> {
  const service = await run.service(kind, {
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_WORKERS: String(WORKERS),
    // These cases do not check the usual deadline, which a busy machine may miss.
    POWGATE_STORE_DEADLINE_MS: '5000',
    // Tokens whose answers were lost are redeemed again after the race.
    POWGATE_TOKEN_SECONDS: '3600',
  })
  const site = await service.createSite({ difficulty: EASY })
  const pool = new Pool({ port: service.port, connections, timeoutMs: TIMEOUT_MS })
  run.defer(() => pool.close())
  return { service, site, pool }
}
