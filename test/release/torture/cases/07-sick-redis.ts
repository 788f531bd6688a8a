/** A steady light load on all endpoints while Redis fails in every known way, and recovers. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { freshAddress } from '../../../harness/http.ts'
import type { Random } from '../../../harness/random.ts'
import { DEADLINE_AS_SHIPPED, UNLIMITED } from '../../../harness/service.ts'
import { Visitors } from '../../../harness/visitors.ts'
import type { Call } from '../history.ts'
import { openRedemptionLoad, type RedemptionLoad } from '../redemption-load.ts'
import { judgeRedemptions } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { type Patient, SICKNESSES, type Sickness, startPatient } from '../sicknesses.ts'

const REFUSAL_MS_MAX = 300
const FIRST_SUCCESS_MS_MAX = 1000
const LONGEST_MS_MAX = 1000 // far beyond the store deadline of 150 ms: a longer call hangs
const BOUNDED_SICKNESS_MS = 600
const WELL_MS = 60_000
/** So many redemptions in a row, from twelve addresses in turn (redemption-load.ts), reach every worker. */
const WELL_CALLS = 40

export const sickRedis: TortureCase = {
  number: 7,
  name: 'sick-redis',
  aim: `/verify-token never 200 without the store, /challenge and /verify never 503; 503 p99 under ${REFUSAL_MS_MAX} ms; first success, and the last 503 of any worker, within ${FIRST_SUCCESS_MS_MAX} ms of recovery; nothing hangs; no token redeemed twice`,
  fullSize: `${SICKNESSES.length} sicknesses of Redis or of the way to it, 5 or 10 s each, two workers, store deadline 150 ms`,
  async run(run) {
    const patient = await startPatient(run)
    const order = shuffled(SICKNESSES, run.random.fork())
    const url = `redis://127.0.0.1:${patient.proxy.port}`
    const topology = { url, isCluster: false, primaryFor: async () => patient }
    // A worker answers from its memory from the first lost call on, so visitors pass however short a sickness is.
    const env = { ...UNLIMITED, POWGATE_FAIL_OPEN_AFTER_SECONDS: '0', ...DEADLINE_AS_SHIPPED }
    const options = { topology, env, hosts: 1, sites: 1, racers: 2 }
    const load = await openRedemptionLoad(run, 'sick-redis', options, run.random.fork())
    const [service, site] = [load.services[0]!, load.sites[0]!]
    // A worker that has never read the site could not answer while its store is away.
    await service.untilReady(service.url, site)
    const client = new Client(service.url)
    // They get a challenge and pass, which needs no store: that is the default of POWGATE_FAIL_OPEN.
    const visitors = new Visitors(
      async () => void (await client.token(site.siteKey, { from: freshAddress() })),
    )
    run.defer(() => visitors.stop())
    const { calls } = load.history
    const ward = { run, patient, load, calls, visitors }
    await untilWell(ward, performance.now())
    let done = 0
    while (done === 0 || (done < order.length && !run.isOver(0.7))) await treat(ward, order[done++]!)
    await visitors.stop()
    await load.stop()
    run.size(`${done} sicknesses, one after the other`)
    judgeRedemptions(run, load.history, ['token-used', 'token-forgotten'])
    const odd = calls.filter(({ status }) => ![200, 400, 503].includes(status))
    run.none('without an answer, or with an odd one', odd)
    run.checkMeasured('longest', Math.max(...calls.map(tookMs)), LONGEST_MS_MAX)
    const refusals = calls.filter(({ status }) => status === 503)
    run.checkMeasured('p99 of all 503s', percentile(refusals, 0.99), REFUSAL_MS_MAX)
    run.figure('visitors who passed', visitors.served)
    run.none('visits that failed', visitors.refused)
  },
}

interface Ward {
  readonly run: Run
  readonly patient: Patient
  readonly load: RedemptionLoad
  readonly calls: readonly Call[]
  readonly visitors: Visitors
}

async function treat(ward: Ward, sickness: Sickness): Promise<void> {
  const { run, patient, load, calls, visitors } = ward
  const { name, seconds = 5, isMild } = sickness
  const ms = run.isFull ? seconds * 1000 : BOUNDED_SICKNESS_MS
  const from = calls.length
  const cure = await sickness.strike(patient)
  const struckMs = performance.now()
  const { served } = visitors
  await sleep(ms)
  const hasEnded = () => calls.slice(from).some(({ startedMs }) => startedMs > struckMs)
  if (!isMild) await eventually(WELL_MS, `${name}: a redemption has ended`, hasEnded)
  const illUntilMs = performance.now()
  // The 0.6 s of a bounded run may be less than one visit takes.
  run.check(visitors.served > served || !run.isFull, `${name}: no visitor passed meanwhile`)
  await cure()
  const wellFromMs = performance.now()
  await untilWell(ward, wellFromMs)
  const since = calls.slice(from)
  if (!isMild) {
    const during = since.filter(({ startedMs, endedMs }) => startedMs > struckMs && endedMs < illUntilMs)
    run.check(during.length > 0, `${name}: nobody asked`)
    const others = during.filter(({ status }) => status !== 503)
    run.none(`${name}: redemptions without the store, answered with something else than 503`, others)
  }
  judge(run, sickness, since, illUntilMs, wellFromMs)
  // Whatever the store has lost, these tokens are not redeemed again (the whole history is checked at the end).
  run.check((await load.redeemLatestAgain(struckMs)) > 0, `${name}: nothing was redeemed before it`)
}

/** The first success may be a call that began while `cure` ran, from `illUntilMs` to `wellFromMs`; times count from its end. */
function judge(
  run: Run,
  { name, isMild, isLate }: Sickness,
  calls: readonly Call[],
  illUntilMs: number,
  wellFromMs: number,
): void {
  const refusals = calls.filter(({ status }) => status === 503)
  const first = calls.find(({ outcome, startedMs }) => outcome === 'ok' && startedMs > illUntilMs)
  const last = refusals.findLast(({ startedMs }) => startedMs > wellFromMs)
  const lastMs = last === undefined ? 0 : last.endedMs - wellFromMs
  const firstMs = Math.max(0, (first?.endedMs ?? Number.POSITIVE_INFINITY) - wellFromMs)
  const p99 = percentile(refusals, 0.99)
  const counts = `503 ${refusals.length} of ${calls.length}, p99 ${p99.toFixed(0)} ms`
  run.checkMeasured(`${name} (${counts}): first success after`, firstMs, FIRST_SUCCESS_MS_MAX)
  run.checkMeasured(`${name}: last 503 of any worker after`, lastMs, FIRST_SUCCESS_MS_MAX)
  if (!run.isFull) return
  run.check(p99 < REFUSAL_MS_MAX, `${name}: p99 of refusals is ${p99.toFixed(0)} ms`)
  if (isMild && !isLate) run.none(`${name}: refusals, though nothing was lost`, refusals)
}

/** Waits until WELL_CALLS redemptions in a row were answered without 503; each token's second use gets 400. */
function untilWell({ load, calls }: Ward, sinceMs: number): Promise<unknown> {
  const about = () => `the service is well\n${load.services[0]!.output.slice(-3000)}`
  return eventually(WELL_MS, about, () => {
    const recent = calls.slice(-WELL_CALLS)
    if (recent.length < WELL_CALLS || recent[0]!.startedMs < sinceMs) return false
    const statuses = recent.map(({ status }) => status)
    return statuses.includes(200) && statuses.every(status => status === 200 || status === 400)
  })
}

function shuffled<T>(all: readonly T[], random: Random): T[] {
  const left = [...all]
  return all.map(() => left.splice(random.below(left.length), 1)[0]!)
}

function tookMs({ startedMs, endedMs }: Call): number {
  return endedMs - startedMs
}

function percentile(calls: readonly Call[], share: number): number {
  const sorted = calls.map(tookMs).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
