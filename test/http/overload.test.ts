/** When a worker sheds load, and which requests: simulated on a virtual clock. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINTS } from '../../src/domain/endpoint.ts'
import { MEASURE_MS, Overload, TICKS_PER_REQUEST } from '../../src/http/overload.ts'
import { eventually } from '../harness/eventually.ts'

const TARGET_MS = 100
/** Nobody is told that shedding begins, which the service logs. */
const newOverload = (targetMs = TARGET_MS) => new Overload(targetMs, () => {})

/** Each connection has one request in flight, so no more can wait. */
const CONNECTIONS = 8000
/** Milliseconds of a worker for a challenge, for a solution or a token, for a refusal, and for another request, which it always answers. */
const COST_MS = { new: 0.02, begun: 0.04, refused: 0.007, other: 0.01 }
const VISITOR_MS = COST_MS.new + 2 * COST_MS.begun

/** A worker on a virtual clock: its ticks, its measurement every 20 ms, and visitors who send three requests each. */
class Worker {
  readonly overload = newOverload()
  nowMs = 0
  #measuredAtMs = 0
  /** Requests that wait for the next tick; the number of those for challenges may have a fraction. */
  #challenges = 0
  /** One for each challenge that was answered in the last tick; then a token for each such solution. */
  #solutions = 0
  #tokens = 0
  /** These count from the last call of `startCounting`. */
  refused = { new: 0, begun: 0 }
  admitted = { new: 0, begun: 0 }
  /** Visitors whose token was answered. */
  served = 0
  tickMsMax = 0

  startCounting(): void {
    const zeros = () => ({ new: 0, begun: 0 })
    Object.assign(this, { refused: zeros(), admitted: zeros(), served: 0, tickMsMax: 0 })
  }

  /**
   * Runs ticks. Each takes what came in the tick before; challenges, solutions and tokens come mixed.
   *
   * @param load visitors, as a multiple of what the worker can serve
   * @param flood further requests of one kind, per millisecond
   */
  run(forMs: number, load: number, flood?: { kind: 'begun' | 'other'; perMs: number }): void {
    const endMs = this.nowMs + forMs
    let lastMs = 1
    while (this.nowMs < endMs) {
      const startMs = this.nowMs
      this.#challenges = Math.min(CONNECTIONS, this.#challenges + (load * lastMs) / VISITOR_MS)
      this.#tick(Math.min(CONNECTIONS, Math.round((flood?.perMs ?? 0) * lastMs)), flood?.kind)
      if (this.nowMs === startMs) this.nowMs += 0.5 // it had nothing to do
      lastMs = this.nowMs - startMs
      this.tickMsMax = Math.max(this.tickMsMax, lastMs)
      this.measureDelay()
    }
  }

  measureDelay(): void {
    const lateMs = this.nowMs - this.#measuredAtMs - MEASURE_MS
    if (lateMs < 0) return
    this.overload.measured(this.nowMs, lateMs * TICKS_PER_REQUEST)
    this.#measuredAtMs = this.nowMs
  }

  #tick(floods: number, kind: 'begun' | 'other' | undefined): void {
    const { overload } = this
    overload.endTick()
    const [challenges, solutions, tokens] = [Math.floor(this.#challenges), this.#solutions, this.#tokens]
    this.#challenges -= challenges
    this.#solutions = 0
    this.#tokens = 0
    const total = Math.max(challenges, solutions, tokens, floods)
    for (let index = 0; index < total; index++) {
      // Spreads so many requests evenly over the turns of the tick.
      const isDue = (count: number) =>
        Math.floor(((index + 1) * count) / total) > Math.floor((index * count) / total)
      if (isDue(tokens) && this.#take('begun')) this.served++
      if (isDue(solutions) && this.#take('begun')) this.#tokens++
      if (isDue(challenges) && this.#take('new')) this.#solutions++
      if (isDue(floods)) {
        if (kind === 'begun') this.#take('begun')
        else {
          if (overload.isShedding) overload.countOther(this.nowMs)
          this.nowMs += COST_MS.other
        }
      }
    }
  }

  #take(kind: 'new' | 'begun'): boolean {
    const isAdmitted = !this.overload.isShedding || this.overload.admits(kind, this.nowMs)
    this.nowMs += isAdmitted ? COST_MS[kind] : COST_MS.refused
    ;(isAdmitted ? this.admitted : this.refused)[kind]++
    return isAdmitted
  }
}

test('ticks of less than the target are no overload, nor is a burst or a pause of the machine', () => {
  const worker = new Worker()
  worker.run(60_000, 0.97)
  assert.deepEqual(worker.refused, { new: 0, begun: 0 })
  const overload = newOverload()
  let nowMs = 0
  // Overload takes delays above the target for half a second. That counts from the first one's end: of 250 and 240, 260 ms count.
  for (const lateMs of [5000, 0, 250, 240, 0, 400, 0, 0, 101, 99, 500]) {
    nowMs += MEASURE_MS + lateMs
    overload.measured(nowMs, lateMs)
    assert.ok(!overload.isShedding, `late by ${lateMs}`)
  }
})

test('a delay above the target is overload once it has lasted; solutions and tokens are still admitted', () => {
  const overload = newOverload()
  for (let nowMs = 0; nowMs <= 500; nowMs += 125) {
    assert.ok(!overload.isShedding)
    overload.measured(nowMs, TARGET_MS + 5)
  }
  assert.ok(overload.isShedding)
  assert.ok(overload.admits('new', 600), 'the first request of a tick finds its whole budget')
  const laterMs = 600 + TARGET_MS
  const admitted = Object.entries(ENDPOINTS).map(([name, { work }]) => [name, overload.admits(work, laterMs)])
  const expected = { challenge: false, verify: true, 'verify-token': true, siteverify: true }
  assert.deepEqual(Object.fromEntries(admitted), expected)
})

test('once started, the gate itself measures how late the event loop is', async t => {
  const overload = newOverload(5)
  t.after(() => overload.stop())
  overload.start()
  await eventually(60_000, 'a busy event loop is overload', () => {
    for (const untilMs = performance.now() + 40; performance.now() < untilMs; );
    return overload.isShedding
  })
})

for (const load of [1.1, 3, 10]) {
  test(`at ${load} times its capacity it serves what refusals leave time for, and all begun work`, () => {
    const worker = new Worker()
    worker.run(5000, load)
    worker.startCounting()
    const startMs = worker.nowMs
    worker.run(20_000, load)
    const refusal = COST_MS.refused / VISITOR_MS
    const most = (1 - load * refusal) / (1 - refusal) // all time goes into `most` visitors and `load - most` refusals
    const share = (worker.served * VISITOR_MS) / (worker.nowMs - startMs)
    assert.ok(share > 0.98 * most && share < 1.02 * most, `${share.toFixed(3)} of at most ${most.toFixed(3)}`)
    assert.equal(worker.refused.begun, 0)
    const waitMsMax = worker.tickMsMax * TICKS_PER_REQUEST
    assert.ok(waitMsMax < TARGET_MS, `a wait of ${waitMsMax.toFixed(0)} ms`)
  })
}

test('begun work is refused where it alone is too much; a second after a load has gone nobody is refused', () => {
  for (const { load, flood, kind, calmAfterMs } of [
    { load: 3, flood: undefined, kind: 'new', calmAfterMs: 500 },
    { load: 0.2, flood: { kind: 'begun', perMs: 3 / COST_MS.begun }, kind: 'begun', calmAfterMs: 1000 },
  ] as const) {
    const worker = new Worker()
    worker.run(10_000, load, flood)
    assert.ok(worker.refused[kind] > 0)
    worker.run(calmAfterMs, 0.3)
    worker.startCounting()
    worker.run(5000, 0.3)
    assert.deepEqual([worker.refused, worker.overload.isShedding], [{ new: 0, begun: 0 }, false])
  }
})

test('a flood of what is no challenge leaves challenges a share', () => {
  for (const flood of [
    { kind: 'begun', perMs: 2 / COST_MS.begun },
    { kind: 'other', perMs: 0.9 / COST_MS.other },
  ] as const) {
    const worker = new Worker()
    worker.run(5000, 0.3, flood)
    worker.startCounting()
    worker.run(20_000, 0.3, flood)
    const { admitted, refused } = worker
    const share = admitted.new / (admitted.new + refused.new)
    assert.ok(share > 0.9, `${flood.kind}: ${admitted.new} of ${admitted.new + refused.new} challenges`)
  }
})
