/** A steady light load on all endpoints while Redis fails in every known way, and recovers. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../../../harness/client.ts'
import { eventually } from '../../../harness/eventually.ts'
import { freshAddress } from '../../../harness/http.ts'
import type { Random } from '../../../harness/random.ts'
import { DEADLINE_AS_SHIPPED, type TestService, type TestSite, UNLIMITED } from '../../../harness/service.ts'
import { Visitors } from '../../../harness/visitors.ts'
import type { Call, History } from '../history.ts'
import { attempt, EASY, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Patient, SICKNESSES, type Sickness } from '../sicknesses.ts'
import { Pool } from '../wire.ts'

const REFUSAL_MS_MAX = 300
const FIRST_SUCCESS_MS_MAX = 1000
/** Far beyond any deadline: a call of this length hangs. */
const HANGS_MS = 5000
const CONNECTIONS = 12
const LANES = 3
/** Redeemed tokens that are tried again after each sickness. */
const LATEST = 100
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

interface Minted {
  readonly token: string
  readonly calls: Call[]
}

class Ward {
  readonly #run: Run
  readonly #patient: Patient
  readonly #service: TestService
  readonly #site: TestSite
  readonly #pool: Pool
  readonly #redemptions: History
  readonly #minted: Minted[] = []
  /** Who gets a challenge and passes, which needs no store: that is the default of POWGATE_FAIL_OPEN. */
  readonly #visitors: Visitors
  #mint: TokenMint
  readonly #backends: Visitors

  private constructor(run: Run, patient: Patient, service: TestService, site: TestSite, mint: TokenMint) {
    this.#run = run
    this.#patient = patient
    this.#service = service
    this.#site = site
    this.#mint = mint
    this.#pool = new Pool({ port: service.port, connections: CONNECTIONS, timeoutMs: HANGS_MS })
    this.#redemptions = run.history('sick-redis-verify-token')
    this.#backends = new Visitors(() => this.#redeem(), LANES)
    run.defer(() => this.stop())
    const client = new Client(service.url)
    this.#visitors = new Visitors(
      async () => void (await client.token(site.siteKey, { from: freshAddress() })),
    )
  }

  static async open(run: Run, patient: Patient): Promise<Ward> {
    const service = await run.service('embedded', {
      ...UNLIMITED,
      REDIS_URL: `redis://127.0.0.1:${patient.proxy.port}`,
      POWGATE_FAIL_OPEN_AFTER_SECONDS: '0',
      ...DEADLINE_AS_SHIPPED,
    })
    const site = await service.createSite({ difficulty: EASY })
    const mint = await TokenMint.open(service.url, site, run.random.fork())
    // A worker that has never read the site could not answer while its store is away.
    await service.untilReady(service.url, site)
    const ward = new Ward(run, patient, service, site, mint)
    await ward.#untilWell(performance.now())
    return ward
  }

  async stop(): Promise<void> {
    await Promise.all([this.#visitors.stop(), this.#backends.stop()])
    this.#pool.close()
  }

  /** Redeems each token at least twice, because an attempt without an answer may have redeemed it. */
  async #redeem(): Promise<void> {
    const subject = this.#minted.push({ token: this.#mint.mint(), calls: [] }) - 1
    await this.#attempt(subject)
    await this.#attempt(subject)
    if (this.#minted[subject]!.calls[0]!.code === 'token-forgotten') await this.#learnEpoch()
  }

  async #attempt(subject: number): Promise<void> {
    const { token, calls } = this.#minted[subject]!
    const race = { pool: this.#pool, site: this.#site, history: this.#redemptions }
    calls.push(await attempt(race, subject, token, calls.length))
  }

  async #learnEpoch(): Promise<void> {
    const epoch = await this.#patient.ask('get', 'pg:{0}:epoch').catch(() => null)
    if (epoch !== null) this.#mint = this.#mint.under(Number(epoch))
  }

  async treat(sickness: Sickness): Promise<void> {
    const { name, seconds = 5, isMild, passes } = sickness
    const ms = this.#run.isFull ? seconds * 1000 : BOUNDED_MS
    const from = this.#redemptions.calls.length
    const mintedFrom = this.#minted.length
    const before = this.#latestRedeemed()
    const cure = await sickness.strike(this.#patient, ms)
    const struckMs = performance.now()
    const { served } = this.#visitors
    await sleep(ms)
    const hasEnded = () => this.#redemptions.calls.slice(from).some(({ startedMs }) => startedMs > struckMs)
    if (!isMild && !passes) await eventually(WELL_MS, `${name}: a redemption has ended`, hasEnded)
    const healedMs = performance.now()
    const havePassed = this.#visitors.served > served
    this.#run.check(havePassed || !this.#run.isFull, `${name}: no visitor passed meanwhile`)
    const cured = (await cure()) ?? { illUntilMs: healedMs, wellFromMs: performance.now() }
    const { illUntilMs, wellFromMs } = cured
    await this.#untilWell(wellFromMs)
    const calls = this.#redemptions.calls.slice(from)
    if (!isMild) {
      const during = calls.filter(({ startedMs, endedMs }) => startedMs > struckMs && endedMs < illUntilMs)
      // A sickness that ends by itself may be over before a busy machine has sent a request.
      this.#run.check(during.length > 0 || (passes === true && !this.#run.isFull), `${name}: nobody asked`)
      const others = during.filter(({ status }) => status !== 503)
      this.#run.none(`${name}: redemptions without the store, answered with something else than 503`, others)
    }
    this.#judge(sickness, calls, illUntilMs, wellFromMs)
    // Whatever the store has lost, these tokens are not redeemed again (the whole history is checked at the end).
    this.#run.check(before.length > 0, `${name}: nothing was redeemed before it`)
    for (const subject of before) await this.#attempt(subject)
    await this.#settle(mintedFrom)
  }

  #latestRedeemed(): number[] {
    const subjects: number[] = []
    for (let subject = this.#minted.length - 1; subject >= 0 && subjects.length < LATEST; subject--)
      if (this.#minted[subject]!.calls.some(({ outcome }) => outcome === 'ok')) subjects.push(subject)
    return subjects
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
    const { calls } = this.#redemptions
    await eventually(
      WELL_MS,
      () => `the service is well\n${this.#service.output.slice(-3000)}`,
      () => {
        const recent = calls.slice(-40)
        if (recent.length < 40 || recent[0]!.startedMs < sinceMs) return false
        return (
          recent.every(({ status }) => status === 200 || status === 400) &&
          recent.some(({ status }) => status === 200)
        )
      },
    )
  }

  /** Repeats attempts with an unknown outcome. */
  async #settle(mintedFrom: number): Promise<void> {
    const end = this.#minted.length
    for (let subject = mintedFrom; subject < end; subject++) {
      const { calls } = this.#minted[subject]!
      if (calls.some(({ outcome }) => outcome === 'unknown')) await this.#attempt(subject)
    }
  }

  judgeAll(): void {
    const run = this.#run
    run.none('tokens redeemed twice', this.#redemptions.doubleSuccesses())
    const { counts, calls } = this.#redemptions
    run.figure('redemptions', JSON.stringify(counts).replaceAll('"', ''))
    run.none(
      'without an answer, or with an odd one',
      calls.filter(({ status }) => ![200, 400, 503].includes(status)),
    )
    run.checkTime('longest', Math.max(...calls.map(tookMs)), HANGS_MS / 5)
    const refusals = calls.filter(({ status }) => status === 503)
    run.checkTime('p99 of all 503s', percentile(refusals, 0.99), REFUSAL_MS_MAX)
    run.figure('visitors who passed', this.#visitors.served)
    run.none('visits that failed', [...this.#visitors.refused, ...this.#backends.refused])
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
