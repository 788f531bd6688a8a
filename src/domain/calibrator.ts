/**
 * Learns how fast the devices of a site's visitors are, as one number: the lead of the median device over SPEED_ASSUMED, in
 * bits. Every accepted proof of a quiet time votes that its device is faster or slower than this estimate, and moves the
 * estimate by one step. The estimate rests where as many votes say "faster" as "slower", at the median. Sums of votes may be
 * added in any order, so each worker adds up its own.
 *
 * A claim moves one step, however wrong it is. Where speeds spread by sigma 0.8, a fifth of lying votes shifts the estimate by
 * 0.37 bit, two fifths by 1.1; with 1.2, half as much again. A majority moves it as far as the bound allows: half a bit a day,
 * and 3 bits on the first day with votes. The first day needs more, since the assumed speed may be four times wrong and a busy
 * site has enough votes within hours. Until then the estimate is a guess anyway. A day starts with the first vote a day after
 * the last start. An estimate at its bound is told to the operator: either the visitors have changed, or many claims are false.
 *
 * A keyed draw on the nonce decides who may vote, so nobody knows beforehand. A vote divides the tries, which the counter
 * tells, by the time that the client claims. Both can be invented. So the claim must fit into the time that the server
 * measured, and the tries must be likely. Browsers' clocks and the start of threads are too coarse for a few milliseconds, so
 * only proofs of at least 2^17 tries vote: 11 ms at 12 MH/s. That prefers no device, because the number of tries is luck. At 18
 * bits 61 of 100 proofs have enough, at 20 bits 88. A liar always claims enough, and so has at most 1.6 times the votes.
 */

import { triesOf } from '../protocol/proof.ts'
import type { Solution } from '../protocol/wire.ts'
import { SPEED_ASSUMED } from './solve-time.ts'

/** "Faster", "slower", or none. */
export type Vote = 1 | -1 | 0

/** Bits. From 2 bits away, 7,000 votes lead to within 0.25; at rest the estimate wavers by 0.02. */
export const VOTE_STEP = 0.0005
const DAY_MS = 86_400_000
const DAY_BITS = 0.5
const FIRST_DAY_BITS = 3

const TRIES_MIN = 2 ** 17
/** Of the proofs that could vote, one in so many may. */
const DRAWN_ONE_IN = 4
/** Times the mean: one proof in ten million takes more. */
const LUCK_MAX = 16

export interface Learned {
  /** Bits. */
  readonly lead: number
  /** The lead when the present day started; 0 on the first day. */
  readonly leadOfDay: number
  /** Unix milliseconds. */
  readonly dayAtMs: number
}

/** What is known of a site's estimate. */
export type Estimate = Pick<Learned, 'lead' | 'leadOfDay'>

/** Whether votes have moved the estimate as far as they may in a day. */
export function isAtBound({ lead, leadOfDay }: Estimate): boolean {
  return Math.abs(lead - leadOfDay) >= mostInDay(leadOfDay)
}

function mostInDay(leadOfDay: number): number {
  return leadOfDay === 0 ? FIRST_DAY_BITS : DAY_BITS
}

/** @param draw of the nonce, 0 to 1 */
export function mayVote(draw: number): boolean {
  return draw * DRAWN_ONE_IN < 1
}

/** @param votes the sum of some votes */
export function learn(before: Learned | undefined, nowMs: number, votes: number): Learned {
  const { lead, leadOfDay, dayAtMs } = before ?? { lead: 0, leadOfDay: 0, dayAtMs: nowMs }
  const isNewDay = Math.abs(nowMs - dayAtMs) >= DAY_MS
  const from = isNewDay ? lead : leadOfDay
  const most = mostInDay(from)
  return {
    lead: Math.max(from - most, Math.min(from + most, lead + votes * VOTE_STEP)),
    leadOfDay: from,
    dayAtMs: isNewDay ? nowMs : dayAtMs,
  }
}

/** @param lead the present estimate */
export function voteOf(
  { counter, solveTimeMs = 0 }: Pick<Solution, 'counter' | 'solveTimeMs'>,
  { difficulty, elapsedMs }: { readonly difficulty: number; readonly elapsedMs: number },
  lead: number,
): Vote {
  const tries = triesOf(counter) ?? 0
  if (tries < TRIES_MIN || tries > LUCK_MAX * 2 ** difficulty) return 0
  if (solveTimeMs <= 0 || solveTimeMs > elapsedMs) return 0
  return (tries * 1000) / solveTimeMs > SPEED_ASSUMED * 2 ** lead ? 1 : -1
}
