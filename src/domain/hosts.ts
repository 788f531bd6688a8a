/** What all hosts of one store must share, or each refuses what the others issue. Pure. */

/** What a host tells the others of itself. */
export interface HostNote {
  /** Random, of one run. */
  readonly id: string
  readonly name: string
  readonly version: string
  /** Unix milliseconds. */
  readonly startedAt: number
  readonly workers: number
  /** What must be equal on all, by the setting. */
  readonly shared: Readonly<Record<string, number>>
  /** Id of the key that signs, and of those that verify: a rotation by the documented steps keeps each known to all. */
  readonly signs: string
  readonly verifies: readonly string[]
}

/** What people are shown of a host. */
export type HostView = Pick<HostNote, 'name' | 'version' | 'startedAt' | 'workers'>

export function viewOf({ name, version, startedAt, workers }: HostNote): HostView {
  return { name, version, startedAt, workers }
}

/** Why two hosts cannot work side by side, for whoever starts or watches `own`; empty if they can. */
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
