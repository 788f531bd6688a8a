/**
 * The cases at full load, each an endpoint on one kind of server.
 *
 *   for each store:  fresh server and store -> build requests -> seed (/verify) -> load -> stop
 *   bare server:     after the first store that answered, its requests again and again, since this server keeps no state
 *
 * To seed is to let the visitors of /verify fetch their challenges, which leaves their records in the store. The ratio to the bare
 * server is taken within a repetition, moments apart, because a shared machine's speed drifts.
 */

import { type Figures, figuresOf, type Run } from './figures.ts'
import { onBare, onService, type Rig, type Target } from './target.ts'
import type { Endpoint } from './traffic.ts'

/** Requests are built for this rate, the most that a case is expected to reach, ... */
const REQUESTS_PER_SECOND_MAX = 100_000
/** ... but no more of them than memory allows. */
const REQUESTS_MAX = 600_000
/** Seeding gets this time more, because a worker that has just started answers more slowly. */
const SEED_START_MS = 1000
/** A run in which a larger share of the visitors came to /verify without a challenge gets a note. */
const UNSEEDED_MAX = 0.01

type LoadRun = Run<Figures>

export async function runEndpoint(rig: Rig, endpoint: Endpoint): Promise<LoadRun[]> {
  const runs: LoadRun[] = []
  let bare: LoadRun | undefined
  for (const store of rig.options.store) {
    const run = await runOn(rig, endpoint, store)
    runs.push(run)
    // Right before the next store, and so moments apart from both. A store that failed does not tell how long the bare answers must be.
    if (run.figures !== undefined)
      bare ??= await runOn(rig, endpoint, 'bare', Math.round(run.figures.answerBytes))
  }
  const bareCpuUs = bare?.figures?.cpuUs
  return [...(bare === undefined ? [] : [bare]), ...runs.map(run => comparedWith(bareCpuUs, run))]
}

async function runOn(rig: Rig, endpoint: Endpoint, server: Run['server'], answerBytes = 0): Promise<LoadRun> {
  const [measureMs, warmUpMs] = [rig.options.seconds * 1000, rig.options.warmup * 1000]
  const measure = async (target: Target) => {
    const result = await target.closedLoop(measureMs, warmUpMs)
    const notes = result.ranOut ? ['requests ran out early'] : []
    if (target.seeded !== undefined && target.seeded < result.sent * (1 - UNSEEDED_MAX))
      notes.push('not all had fetched a challenge')
    return { endpoint, server, figures: figuresOf(result, target.ownCount), notes }
  }
  try {
    if (server === 'bare') return await onBare(rig, answerBytes, measure)
    const count = Math.ceil(((measureMs + warmUpMs) / 1000) * REQUESTS_PER_SECOND_MAX)
    // A challenge is cheaper than the /verify after it, so seeding for as long as the load lasts fetches enough of them.
    const seedMs = measureMs + warmUpMs + SEED_START_MS
    const wanted = { endpoint, store: server, count: Math.min(REQUESTS_MAX, count), seedMs }
    return await onService(rig, wanted, measure)
  } catch (error) {
    return { endpoint, server, failure: (error as Error).message }
  }
}

function comparedWith(bareCpuUs: number | undefined, run: LoadRun): LoadRun {
  if (bareCpuUs === undefined || run.figures === undefined) return run
  return { ...run, figures: { ...run.figures, timesBare: run.figures.cpuUs / bareCpuUs } }
}
