import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOOK_MS, LOOKS, Overload } from '../../src/domain/overload.ts'

const TARGET_MS = 4

function shedding(): Overload {
  const overload = new Overload({ turnMsTarget: TARGET_MS })
  for (let look = 0; look < LOOKS; look++) overload.looked(0, LOOK_MS)
  assert.ok(overload.isShedding)
  return overload
}

test('sheds when the event loop was not idle for a while, not after a burst', () => {
  const overload = new Overload({ turnMsTarget: TARGET_MS })
  for (let round = 0; round < 10; round++) {
    for (let look = 0; look < LOOKS - 1; look++) assert.equal(overload.looked(0, LOOK_MS), false)
    assert.equal(overload.looked(LOOK_MS / 50, LOOK_MS), false, 'it was idle')
  }
  assert.equal(overload.isShedding, false)
  for (let look = 0; look < LOOKS - 1; look++) assert.equal(overload.looked(0, LOOK_MS), false)
  assert.equal(overload.looked(0, LOOK_MS), true)
  assert.equal(overload.isShedding, true)
})

test('takes everything while turns are short, and is calm again when it has refused nothing for a while', () => {
  const overload = shedding()
  for (let turn = 0; turn < 1000; turn++) {
    overload.turn(TARGET_MS)
    for (let request = 0; request < 50; request++) assert.ok(overload.admits(request % 2 ? 'new' : 'begun'))
  }
  for (let look = 0; look < LOOKS - 1; look++) assert.equal(overload.looked(0, LOOK_MS), false)
  assert.equal(overload.looked(0, LOOK_MS), true)
  assert.equal(overload.isShedding, false)
})

test('does not stop while it refuses', () => {
  const overload = shedding()
  for (let look = 0; look < 3 * LOOKS; look++) {
    for (let turn = 0; turn < 20; turn++) {
      overload.turn(10 * TARGET_MS)
      for (let request = 0; request < 50; request++) overload.admits('new')
    }
    assert.equal(overload.looked(LOOK_MS, LOOK_MS), false)
  }
})

/** Milliseconds of a worker: a challenge, a solution or a token, and a refusal. */
const COST_MS = { new: 0.02, begun: 0.04, refused: 0.007 }

interface Served {
  /** Visitors whose token was redeemed, per ms. */
  readonly visitors: number
  readonly refusedBegun: number
  readonly turnMs: number
}

/** A worker to which visitors come `load` times as fast as it can serve them; the last half of `turns`. */
function serve(load: number, turns: number): Served {
  const overload = shedding()
  const perMs = load / (COST_MS.new + 2 * COST_MS.begun)
  let [turnMs, due, refusedBegun, tokens, passedMs] = [1, 0, 0, 0, 0]
  let begun = { solutions: 0, tokens: 0 }
  for (let turn = 0; turn < turns; turn++) {
    if (turn === turns / 2) [refusedBegun, tokens, passedMs] = [0, 0, 0]
    overload.turn(turnMs)
    due += perMs * turnMs
    turnMs = 0
    const next = { solutions: 0, tokens: 0 }
    for (; due >= 1; due--) {
      const isTaken = overload.admits('new')
      turnMs += COST_MS[isTaken ? 'new' : 'refused']
      if (isTaken) next.solutions++
    }
    for (let index = 0; index < begun.solutions + begun.tokens; index++) {
      const isTaken = overload.admits('begun')
      turnMs += COST_MS[isTaken ? 'begun' : 'refused']
      if (!isTaken) refusedBegun++
      else if (index < begun.solutions) next.tokens++
      else tokens++
    }
    begun = next
    turnMs = Math.max(turnMs, 0.05)
    passedMs += turnMs
  }
  return { visitors: tokens / passedMs, refusedBegun, turnMs: passedMs / (turns / 2) }
}

test('serves nearly what refusals leave time for, and begun work first', () => {
  const costMs = COST_MS.new + 2 * COST_MS.begun
  const capacity = 1 / costMs
  for (const load of [1.2, 1.5, 2, 3, 6]) {
    const { visitors, refusedBegun, turnMs } = serve(load, 20_000)
    const share = COST_MS.refused / costMs
    const most = (1 - load * share) / (1 - share)
    const text = `load ${load}: ${(visitors / capacity).toFixed(3)} of at most ${most.toFixed(3)}, turns of ${turnMs.toFixed(2)} ms`
    assert.ok(visitors / capacity > 0.95 * most, text)
    assert.ok(visitors / capacity <= most + 0.01, text)
    assert.ok(turnMs < 1.5 * TARGET_MS, text)
    assert.ok(refusedBegun < 0.01 * visitors * turnMs * 10_000, `${text}: ${refusedBegun} refused when begun`)
  }
})

test('sheds begun work only where it alone is far too much', () => {
  const overload = shedding()
  let turnMs = 1
  let turnsMs = 0
  for (let turn = 0; turn < 10_000; turn++) {
    overload.turn(turnMs)
    const come = Math.round((3 * turnMs) / COST_MS.begun)
    turnMs = 0
    for (let index = 0; index < Math.max(1, come); index++)
      turnMs += overload.admits('begun') ? COST_MS.begun : COST_MS.refused
    if (turn >= 5000) turnsMs += turnMs
  }
  assert.ok(turnsMs / 5000 > 10 * TARGET_MS, `turns of ${turnsMs / 5000} ms`)
  assert.ok(turnsMs / 5000 < 30 * TARGET_MS, `turns of ${turnsMs / 5000} ms`)
})

test('a flood of what looks like begun work, or of requests for nothing, leaves challenges a share', () => {
  for (const flood of ['begun', 'other'] as const) {
    const overload = shedding()
    let turnMs = 1
    let [taken, refused, floods] = [0, 0, 0]
    for (let turn = 0; turn < 10_000; turn++) {
      overload.turn(turnMs)
      // Twice as many as can be answered, and a challenge for every ten of them.
      const come = Math.max(10, Math.round((2 * turnMs) / COST_MS.refused))
      turnMs = 0
      for (let index = 0; index < come; index++) {
        if (index % 10 === 0) {
          const isTaken = overload.admits('new')
          turnMs += isTaken ? COST_MS.new : COST_MS.refused
          if (turn >= 5000) isTaken ? taken++ : refused++
        } else {
          if (flood === 'other') overload.seen()
          else overload.admits('begun')
          turnMs += COST_MS.refused
          if (turn >= 5000) floods++
        }
      }
      turnMs = Math.min(turnMs, 40)
    }
    assert.ok(
      taken > 0.9 * (taken + refused),
      `${flood}: ${taken} of ${taken + refused} challenges, ${floods} others`,
    )
  }
})
