/** What each host writes about itself to the Redis that it shares, so that hosts with other secrets, settings or clocks are found. */

import { CLOCK_SKEW_MS } from '../domain/clock.ts'

export interface HostNote {
  /** New at each start. */
  readonly id: string
  readonly name: string
  readonly version: string
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly workers: number
  /** What must be equal on all hosts, by the name that the operator is told (process/host-registry.ts). */
  readonly shared: Readonly<Record<string, number>>
  /** Ids of the key that signs and of all keys. By the documented steps of a rotation, every host knows all. */
  readonly signs: string
  readonly verifies: readonly string[]
  /** Unix milliseconds by the host's clock, which redis/records.ts adds when it writes the note. */
  readonly notedAt?: number
  /** The host's clock minus that of Redis when the note was written; undefined if not known. redis/records.ts adds it on reading. */
  readonly clockAheadMs?: number
}

/** What the dashboard and `powgate hosts --json` show of a host. */
export function viewOf({ name, version, startedAt, workers }: HostNote) {
  return { name, version, startedAt, workers }
}

/** A host's note without what is new at each start. */
export type HostTerms = Omit<HostNote, 'id' | 'startedAt'>

/** Why two hosts cannot work together, for the operator of `own`. */
export function differences(own: HostTerms, other: HostNote): string[] {
  const { name } = other
  // A host of another version may note other settings, so a setting that only one of the two notes is no difference.
  const found = Object.entries(own.shared)
    .filter(([setting, value]) => other.shared[setting] !== undefined && other.shared[setting] !== value)
    .map(([setting, value]) => `${setting}: ${value} here, ${other.shared[setting]} on ${name}`)
  const areClocksKnown = own.clockAheadMs !== undefined && other.clockAheadMs !== undefined
  const apartMs = areClocksKnown ? own.clockAheadMs - other.clockAheadMs : 0
  if (Math.abs(apartMs) > CLOCK_SKEW_MS)
    found.push(
      `clock: ${Math.round(Math.abs(apartMs) / 1000)} s ${apartMs > 0 ? 'ahead of' : 'behind'} ${name}: set both by NTP`,
    )
  if (!own.verifies.includes(other.signs))
    found.push(`POWGATE_SECRETS: lacks the secret that signs on ${name} (SHA-256 ${other.signs}...)`)
  else if (!other.verifies.includes(own.signs))
    found.push(
      `POWGATE_SECRETS: the first, which signs here (SHA-256 ${own.signs}...), is not known on ${name}`,
    )
  return found
}
