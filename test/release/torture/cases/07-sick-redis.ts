/** A steady light load on all endpoints while Redis fails in every known way, and recovers. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { freshAddress } from '../../../harness/http.ts'
import type { Random } from '../../../harness/random.ts'
import { DEADLINE_AS_SHIPPED, UNLIMITED } from '../../../harness/service.ts'
import { Visitors } from '../../../harness/visitors.ts'
import type { Call } from '../history.ts'
import { RedemptionLoad } from '../redemption-load.ts'
import { judgeRedemptions } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Patient, SICKNESSES, type Sickness } from '../sicknesses.ts'

const REFUSAL_MS_MAX = 300
const FIRST_SUCCESS_MS_MAX = 1000
/** Far beyond any deadline: a call of this length hangs. */
const LONGEST_MS_MAX = 1000
/** How long a sickness lasts in a bounded run. */
const BOUNDED_MS = 600
const WELL_MS = 60_000

export const sickRedis: TortureCase = {
  number: 7,
  name: 'sick-redis',
  aim: `/verify-token never 200 without the store, /challenge and /verify never 503; 503 p99 under ${REFUSAL_MS_MAX} ms; first success, and the last 503 of any worker, within ${FIRST_SUCCESS_MS_MAX} ms of recovery; nothing hangs; no token redeemed twice`,
  fullSize: `${SICKNESSES.length} sicknesses of Redis or of the way to it, 5 or 10 s each, two workers, store deadline 150 ms`,
  async run(run) {
    const patient = await Patient.start(run)
    const order = shuffled(SICKNESSES, run.random.fork())
    const ward = await Ward.open(run, patient)
    let done = 0
    while (done === 0 || (done < order.length && !run.isOver(0.7))) await ward.treat(order[done++]!)
    await ward.stop()
    run.size(`${done} sicknesses, one after the other`)
    ward.judgeAll()
  },
}

class Ward {
  readonly #run: Run
  readonly #patient: Patient
  readonly #load: RedemptionLoad
  readonly #calls: readonly Call[]
  /** Who gets a challenge and passes, which needs no store: that is the default of POWGATE_FAIL_OPEN. */
  readonly #visitors: Visitors

  private constructor(run: Run, patient: Patient, load: RedemptionLoad) {
    this.#run = run
    this.#patient = patient
    this.#load = load
    this.#calls = load.history.calls
    const [client, site] = [new Client(load.services[0]!.url), load.sites[0]!]
    this.#visitors = new Visitors(
      async () => void (await client.token(site.siteKey, { from: freshAddress() })),
    )
    run.defer(() => this.#visitors.stop())
  }

  static async open(run: Run, patient: Patient): Promise<Ward> {
    const url = `redis://127.0.0.1:${patient.proxy.port}`
    const topology = { url, isCluster: false, primaryFor: async () => patient }
    const env = { ...UNLIMITED, POWGATE_FAIL_OPEN_AFTER_SECONDS: '0', ...DEADLINE_AS_SHIPPED }
    const options = { topology, env, hosts: 1, sites: 1, racers: 2 }
    const load = await RedemptionLoad.open(run, 'sick-redis', options, run.random.fork())
    // A worker that has never read the site could not answer while its store is away.
    for (const service of load.services) await service.untilReady(service.url, load.sites[0])
    const ward = new Ward(run, patient, load)
    await ward.#untilWell(performance.now())
    return ward
  }

  async stop(): Promise<void> {
    await this.#visitors.stop()
    await this.#load.stop()
  }

  async treat(sickness: Sickness): Promise<void> {
    const { name, seconds = 5, isMild, passes } = sickness
    const ms = this.#run.isFull ? seconds * 1000 : BOUNDED_MS
    const from = this.#calls.length
    const cure = await sickness.strike(this.#patient, ms)
    const struckMs = performance.now()
    const { served } = this.#visitors
    await sleep(ms)
    const hasEnded = () => this.#calls.slice(from).some(({ startedMs }) => startedMs > struckMs)
    if (!isMild && !passes) await eventually(WELL_MS, `${name}: a redemption has ended`, hasEnded)
    const healedMs = performance.now()
    const havePassed = this.#visitors.served > served
    this.#run.check(havePassed || !this.#run.isFull, `${name}: no visitor passed meanwhile`)
    const cured = (await cure()) ?? { illUntilMs: healedMs, wellFromMs: performance.now() }
    const { illUntilMs, wellFromMs } = cured
    await this.#untilWell(wellFromMs)
    const calls = this.#calls.slice(from)
    if (!isMild) {
      const during = calls.filter(({ startedMs, endedMs }) => startedMs > struckMs && endedMs < illUntilMs)
      // A sickness that ends by itself may be over before a busy machine has sent a request.
      this.#run.check(during.length > 0 || (passes === true && !this.#run.isFull), `${name}: nobody asked`)
      const others = during.filter(({ status }) => status !== 503)
      this.#run.none(`${name}: redemptions without the store, answered with something else than 503`, others)
    }
    this.#judge(sickness, calls, illUntilMs, wellFromMs)
    // Whatever the store has lost, these tokens are not redeemed again (the whole history is checked at the end).
    this.#run.check((await this.#load.retryLatest(struckMs)) > 0, `${name}: nothing was redeemed before it`)
  }

  #judge({ name, isMild }: Sickness, calls: readonly Call[], illUntilMs: number, wellFromMs: number): void {
    const refusals = calls.filter(({ status }) => status === 503)
    const first = calls.find(({ outcome, startedMs }) => outcome === 'ok' && startedMs > illUntilMs)
    const last = refusals.findLast(({ startedMs }) => startedMs > wellFromMs)
    const lastMs = last === undefined ? 0 : last.endedMs - wellFromMs
    const firstMs = Math.max(0, (first?.endedMs ?? Number.POSITIVE_INFINITY) - wellFromMs)
    const p99 = percentile(refusals, 0.99)
    const counts = `503 ${refusals.length} of ${calls.length}, p99 ${p99.toFixed(0)} ms`
    this.#run.checkTime(`${name} (${counts}): first success after`, firstMs, FIRST_SUCCESS_MS_MAX)
    this.#run.checkTime(`${name}: last 503 of any worker after`, lastMs, FIRST_SUCCESS_MS_MAX)
    if (!this.#run.isFull) return
    this.#run.check(p99 < REFUSAL_MS_MAX, `${name}: p99 of refusals is ${p99.toFixed(0)} ms`)
    if (isMild && !name.includes('late'))
      this.#run.none(`${name}: refusals, though nothing was lost`, refusals)
  }

  /** Waits until 40 redemptions in a row were answered without 503. */
  async #untilWell(sinceMs: number): Promise<void> {
    await eventually(
      WELL_MS,
      () => `the service is well\n${this.#load.services[0]!.output.slice(-3000)}`,
      () => {
        const recent = this.#calls.slice(-40)
        if (recent.length < 40 || recent[0]!.startedMs < sinceMs) return false
        return (
          recent.every(({ status }) => status === 200 || status === 400) &&
          recent.some(({ status }) => status === 200)
        )
      },
    )
  }

  judgeAll(): void {
    const [run, calls] = [this.#run, this.#calls]
    judgeRedemptions(run, this.#load.history, ['token-used', 'token-forgotten'])
    run.none(
      'without an answer, or with an odd one',
      calls.filter(({ status }) => ![200, 400, 503].includes(status)),
    )
    run.checkTime('longest', Math.max(...calls.map(tookMs)), LONGEST_MS_MAX)
    const refusals = calls.filter(({ status }) => status === 503)
    run.checkTime('p99 of all 503s', percentile(refusals, 0.99), REFUSAL_MS_MAX)
    run.figure('visitors who passed', this.#visitors.served)
    run.none('visits that failed', this.#visitors.refused)
  }
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
