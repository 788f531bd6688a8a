/**
 * What the simulator asks of a policy. service.ts is the adapter of this tree's rules. An older revision brings an adapter of
 * its own, so both can stand in one table, and no rule is copied.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Address } from '../../src/domain/address.ts'
import { UsageError } from '../../test/harness/command-line.ts'
import { checkOut, commitOf } from '../compare/tree.ts'

export interface Challenge {
  readonly bits: number
  /** The site's base for it. */
  readonly base: number
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

export type ChallengeAnswer = Challenge | { readonly retryAfterMs: number }

export type VerifyAnswer =
  | { readonly status: 'passed'; readonly score: number }
  | { readonly status: 'failed' | 'expired' }
  | { readonly status: 'limited'; readonly retryAfterMs: number }

/** A solution as the rules see one. */
export interface Solution {
  readonly challenge: Challenge
  readonly isRight: boolean
  readonly fingerprint: string
  /** From `readNonce`; any if not given. */
  readonly draw?: number
}

/** A service of one site, whose workers each have a state of their own. Workers are numbered from 0. */
export interface Policy {
  /** Bits. */
  readonly base: number
  challenge(address: Address, worker: number): ChallengeAnswer
  verify(address: Address, worker: number, solution: Solution): VerifyAnswer
}

/**
 * @param workers which count fingerprints apart
 * @param base the policy's default if not given
 * @param solveMs the site's solving time, which takes the base's place
 */
export type PolicyMaker = new (
  clock: Clock,
  workers: number,
  base?: number,
  shards?: number,
  solveMs?: number,
) => Policy

export interface Clock {
  /** Milliseconds since the start of the scenario. */
  readonly nowMs: number
}

const ADAPTER = 'bench/simulator/service.ts'

/** The policy of a Git revision. Throws UsageError if there is no such revision, or it has no adapter. */
export async function policyOf(revision: string): Promise<PolicyMaker> {
  const checkout = await checkOut(await commitOf(revision))
  try {
    const file = join(checkout.root, ADAPTER)
    if (!existsSync(file)) throw new UsageError(`--before: ${revision} has no ${ADAPTER}`)
    const { Service } = (await import(pathToFileURL(file).href)) as { Service: PolicyMaker }
    return Service
  } finally {
    await checkout.stop()
  }
}
