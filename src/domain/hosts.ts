/** What all hosts of one store must have in common; otherwise each refuses what the others issue. */

/** What a host tells the others about itself. */
export interface HostNote {
  /** Random, new at each start. */
  readonly id: string
  readonly name: string
  readonly version: string
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly workers: number
  /** Settings that must be equal on all hosts. */
  readonly shared: Readonly<Record<string, number>>
  /** Ids of the signing key and the verifying keys. Rotating by the documented steps keeps every key known to all. */
  readonly signs: string
  readonly verifies: readonly string[]
}

/** Shown to people. */
export type HostView = Pick<HostNote, 'name' | 'version' | 'startedAt' | 'workers'>

export function viewOf({ name, version, startedAt, workers }: HostNote): HostView {
  return { name, version, startedAt, workers }
}

/** Why two hosts cannot work together, as told to the operator of `own`; empty if they can. */
export function differences(own: HostNote, other: HostNote): string[] {
  const { name } = other
  const found = Object.entries(own.shared)
    .filter(([setting, value]) => other.shared[setting] !== undefined && other.shared[setting] !== value)
    .map(([setting, value]) => `${setting}: ${value} here, ${other.shared[setting]} on ${name}`)
  if (!own.verifies.includes(other.signs))
    found.push(`POWGATE_SECRETS: lacks the secret that signs on ${name} (key ${other.signs})`)
  else if (!other.verifies.includes(own.signs))
    found.push(`POWGATE_SECRETS: the first, which signs here (key ${own.signs}), is not known on ${name}`)
  return found
}
