/** What /challenge and /verify do more for sites that name a solving time (domain/solve-time.ts). */

import { type Address, limitKey } from '../domain/address.ts'
import { voteOf } from '../domain/calibrator.ts'
import { isAttack } from '../domain/load.ts'
import { nonceTerms } from '../domain/nonce.ts'
import type { ScoreSignals } from '../domain/score.ts'
import type { Site } from '../domain/site.ts'
import { type ChallengeBounds, drawOf, timingFor, wholeBits } from '../domain/solve-time.ts'
import type { Solution } from '../protocol/wire.ts'
import type { Service } from './service.ts'

/** The site's bounds; where it names a time, with the base that the address gets in this minute. */
export function boundsFor(service: Service, site: Site, addressKey: string, nowMs: number): ChallengeBounds {
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

/** Lets a solution that nothing speaks against vote on the speed of devices, if neither site nor address had climbed. */
export function voteOnSpeed(
  service: Service,
  site: Site,
  address: Address,
  solution: Solution,
  signals: ScoreSignals,
): void {
  const { siteKey, difficulty } = site.record
  if (difficulty.solveMs === undefined) return
  const { rate, usualRate } = service.loads.load(siteKey)
  if (isAttack(rate, usualRate)) return
  const addressKey = limitKey(address, service.settings.ipv6PrefixBits)
  const { base } = boundsFor(service, site, addressKey, nonceTerms(solution.nonce).issuedAtMs)
  if (signals.difficulty > base) return
  service.speeds.vote(siteKey, address, voteOf(solution, signals, service.speeds.lead(siteKey)))
}
