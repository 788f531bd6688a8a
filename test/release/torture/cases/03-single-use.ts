/** Every token is redeemed by many requests at once, through all workers: exactly one succeeds. */

import { connectionsPerProcess, workerPids } from '../../../harness/processes.ts'
import {
  STORE_KINDS,
  type StoreKind,
  type TestService,
  UNLIMITED_REDEMPTIONS,
} from '../../../harness/service.ts'
import { EASY, judgeRedemptions, RACERS, type Race, raceFor, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Pool } from '../wire.ts'

const TOKENS = 10_000
const TOKENS_AT_ONCE = 4
const WORKERS = 4
const TIMEOUT_MS = 20_000

export const singleUse: TortureCase = {
  number: 3,
  name: 'single-use',
  aim: 'as many successes as tokens, one each',
  fullSize: '10,000 tokens x 64 redemptions at once, four workers, both stores',
  async run(run) {
    for (const [index, kind] of STORE_KINDS.entries())
      await onStore(run.part(kind), kind, (index + 1) / STORE_KINDS.length)
  },
}

async function onStore(run: Run, kind: StoreKind, share: number): Promise<void> {
  const course = await openRaceCourse(run, kind, 'single-use')
  const { service, tokens } = course
  const { history } = course.race
  await raceForTokens(course, () => tokens.length > 0 && run.isOver(share))
  const perWorker = connectionsPerProcess(service.port, workerPids(service.pid))
  await course.close()
  const successes = history.calls.filter(({ outcome }) => outcome === 'ok').length
  run.size(
    `${tokens.length.toLocaleString('en-US')} tokens x ${RACERS}, connections per worker ${perWorker.join(' ')}`,
  )
  run.figure('successes', successes)
  judgeRedemptions(run, history, ['token-used'])
  run.check(successes === tokens.length, `${successes} successes of ${tokens.length} tokens`)
  run.check(!perWorker.includes(0), `a worker had no connection: ${perWorker}`)
  const { ok, 'refused token-used': used, ...others } = history.counts
  run.none('other outcomes', Object.entries(others))
}

interface RaceCourse {
  readonly run: Run
  readonly service: TestService
  readonly race: Race
  readonly mint: TokenMint
  /** Tokens that were raced for. */
  readonly tokens: string[]
  close(): Promise<void>
}

/** For cases 3 and 4: a service with four workers, a site whose redemptions are unlimited, and connections to it. */
export async function openRaceCourse(
  run: Run,
  kind: StoreKind,
  name: string,
  how: Pick<Race, 'hasKeys' | 'hangsUp'> = {},
): Promise<RaceCourse> {
  const service = await run.service(kind, {
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_WORKERS: String(WORKERS),
    // These cases do not check the usual deadline, which a busy machine may miss.
    POWGATE_STORE_DEADLINE_MS: '5000',
    // Tokens whose answers were lost are redeemed again after the race.
    POWGATE_TOKEN_SECONDS: '3600',
  })
  const site = await service.createSite({ difficulty: EASY })
  const connections = RACERS * TOKENS_AT_ONCE
  const pool = new Pool({ port: service.port, connections, timeoutMs: TIMEOUT_MS })
  const race = { pool, site, history: run.history(`${name}-${kind}`), ...how }
  const mint = await TokenMint.open(service.url, site, run.random.fork())
  run.defer(() => pool.close())
  const close = async () => {
    pool.close()
    await service.stop()
  }
  return { run, service, race, mint, tokens: [], close }
}

/** Makes tokens, and races for a few at a time, until there are enough or `isOver`. */
export async function raceForTokens(
  { run, race, mint, tokens }: RaceCourse,
  isOver: () => boolean,
): Promise<void> {
  const lane = async () => {
    while (tokens.length < TOKENS && !isOver()) {
      const subject = tokens.push(mint.mint()) - 1
      if (subject % 1000 === 0) run.progress(`${subject} tokens`)
      await raceFor(race, subject, tokens[subject]!)
    }
  }
  await Promise.all(Array.from({ length: TOKENS_AT_ONCE }, lane))
}
