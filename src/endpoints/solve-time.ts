/** The bounds of a challenge; and what more is done for sites that name a solving time (domain/solve-time.ts). */

import { type Address, limitKey } from '../domain/address.ts'
import { mayVote, voteOf } from '../domain/calibrator.ts'
import { isAttack } from '../domain/load.ts'
import { nonceTerms } from '../domain/nonce.ts'
import type { ScoreSignals } from '../domain/score.ts'
import { raisedBits, type Site } from '../domain/site.ts'
import { type ChallengeBounds, drawOf, drawOfText, timingFor, wholeBits } from '../domain/solve-time.ts'
import type { Solution } from '../protocol/wire.ts'
import type { Service } from './service.ts'

/** The site's bounds; with a raise, the base is higher by its bits, up to the maximum. */
export function boundsFor(service: Service, site: Site, addressKey: string, nowMs: number): ChallengeBounds {
  const bounds = usualBounds(service, site, addressKey, nowMs)
  const bits = raisedBits(site.record, nowMs)
  if (bits === 0) return bounds
  const base = Math.min(bounds.max, bounds.base + bits)
  return { ...bounds, base, raise: base - bounds.base }
}

/** Where the site names a time, with the base that the address gets in this minute. */
function usualBounds(service: Service, site: Site, addressKey: string, nowMs: number): ChallengeBounds {
  const { siteKey, difficulty } = site.record
  const { solveMs, min, max } = difficulty
  if (solveMs === undefined) return difficulty
  const timing = timingFor({ solveMs, min, max }, service.speeds.lead(siteKey))
  const { exactBase } = timing
  const base = Number.isInteger(exactBase)
    ? exactBase
    : wholeBits(exactBase, drawOf(service.keyring.signing.drawMac, siteKey, addressKey, nowMs))
  return { base, min, max, timing }
}

/** Lets a solution that nothing speaks against vote on the speed of devices, if nothing had made its challenge harder. */
export function voteOnSpeed(
  service: Service,
  site: Site,
  address: Address,
  solution: Solution,
  signals: ScoreSignals,
): void {
  const { siteKey, difficulty } = site.record
  if (difficulty.solveMs === undefined) return
  if (isAttack(service.loads.load(site.record))) return
  const addressKey = limitKey(address, service.settings.ipv6PrefixBits)
  const { base } = usualBounds(service, site, addressKey, nonceTerms(solution.nonce).issuedAtMs)
  if (signals.difficulty > base) return
  if (!mayVote(drawOfText(service.keyring.signing.drawMac, solution.nonce))) return
  service.speeds.vote(siteKey, address, voteOf(solution, signals, service.speeds.lead(siteKey)))
}
