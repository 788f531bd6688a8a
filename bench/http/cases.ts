/**
 * The cases at full load, each an endpoint on one kind of server.
 *
 *   for each store:  fresh server and store -> build requests -> seed (/verify) -> load -> stop
 *   bare server:     after the first store, the same requests, as often as it takes
 *
 * The ratio to the bare server is taken within a repetition, moments apart, because a shared machine's speed drifts.
 */

import type { Endpoint } from '../../test/harness/load/traffic.ts'
import { failureOf, figuresOf, type Run } from './figures.ts'
import { onBare, onService, type Rig, type Target } from './target.ts'

/** Requests are built for this rate, the most that a case is expected to reach, ... */
const REQUESTS_PER_SECOND_MAX = 100_000
/** ... but no more of them than memory allows. */
const REQUESTS_MAX = 600_000
/** A warm-up that is cut short by requests running out must leave enough of them. */
const REQUESTS_MIN = 20_000
/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
const SEED_MS_MAX = 45_000
/** A worker that has just started answers more slowly. */
const SEED_START_MS = 1000
const UNSEEDED_MAX = 0.01

export async function runEndpoint(rig: Rig, endpoint: Endpoint): Promise<Run[]> {
  const runs: Run[] = []
  let bare: Run | undefined
  for (const store of rig.options.store) {
    const run = await runOn(rig, endpoint, store)
    runs.push(run)
    // After the first store, hence moments apart from the second, too.
    bare ??= await runOn(rig, endpoint, 'bare', Math.round(run.figures?.answerBytes ?? 0))
  }
  return [bare!, ...runs.map(run => comparedWith(bare!, run))]
}

async function runOn(rig: Rig, endpoint: Endpoint, server: Run['server'], answerBytes = 0): Promise<Run> {
  const { seconds, warmup } = rig.options
  const count = Math.ceil((seconds + warmup) * REQUESTS_PER_SECOND_MAX)
  const measure = async (target: Target) => {
    const result = await target.load(seconds * 1000, warmup * 1000)
    const notes = result.ranOut ? ['requests ran out early'] : []
    if (target.seeded !== undefined && target.seeded < result.sent * (1 - UNSEEDED_MAX))
      notes.push('not all had fetched a challenge')
    return { figures: figuresOf(result, target.pids.length), failure: failureOf(result), notes }
  }
  try {
    if (server === 'bare') return { endpoint, server, ...(await onBare(rig, answerBytes, measure)) }
    const wanted = {
      endpoint,
      store: server,
      count: Math.max(REQUESTS_MIN, Math.min(REQUESTS_MAX, count)),
      // Challenges are cheaper than what follows them: as many as will be needed are sent in the same time.
      seedMsMax: Math.min(SEED_MS_MAX, (seconds + warmup) * 1000 + SEED_START_MS),
    }
    return { endpoint, server, ...(await onService(rig, wanted, measure)) }
  } catch (error) {
    return { endpoint, server, figures: undefined, failure: (error as Error).message, notes: [] }
  }
}

function comparedWith(bare: Run, run: Run): Run {
  if (bare.figures === undefined || run.figures === undefined) return run
  return { ...run, figures: { ...run.figures, timesBare: run.figures.cpuUs / bare.figures.cpuUs } }
}
