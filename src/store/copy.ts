/**
 * Copies one store to another while no service uses either (`powgate store copy`). Sites, API keys and the audit log come first.
 * Then comes what is under way: limits, used nonces, redemption records, meters. The epoch comes last, and the source loses it
 * before the target gets it: so no token is ever valid at both.
 */

import type { Members, SitesImage } from './members.ts'
import { StoreSetupError } from './store.ts'

/** One record of what is under way, in the form of Redis: times of a record are those of the wall clock. */
export interface StateEntry {
  readonly shard: number
  /** Behind the hash tag: `l:<address>`, `r:<nonce>` and so on (redis/requests.ts). */
  readonly name: string
  readonly value: Buffer
  /** How long it is still kept. */
  readonly restMs: number
}

/** A store that is copied from or to. */
export interface CopyEnd {
  readonly place: string
  readonly sites: Members
  readonly shards: number
  /** The services that use the store, in words; undefined if none does. */
  usedBy(): Promise<string | undefined>
  /** Of each shard; undefined if what is under way is not to be trusted, or was taken before. */
  epochs(): Promise<readonly number[] | undefined>
  /** Some at a time. */
  entries(): AsyncIterable<readonly StateEntry[]>
  write(entries: readonly StateEntry[]): Promise<void>
  /** Removes what is under way. */
  clear(): Promise<void>
  /** From now on the shards have these epochs. */
  adopt(epochs: readonly number[]): Promise<void>
  /** The next service draws new epochs. */
  retire(): Promise<void>
  close(): Promise<void>
}

/** How soon a service must start on the target, or it draws new epochs: see `adopt` of redis/copy.ts. */
export const START_SECONDS = 50

interface Copied {
  readonly sites: number
  readonly apiKeys: number
  readonly auditEntries: number
  /** Records under way; undefined if they could not be taken. */
  readonly underWay: number | undefined
  /** Why not. */
  readonly why?: string
}

/**
 * Safe to repeat: a copy that was cut off is done again from its start.
 *
 * @param replaces whether records that only the target has are thrown away
 * @param tell how many records under way were copied so far
 * @throws StoreSetupError before anything is changed
 */
export async function copyStore(
  from: CopyEnd,
  to: CopyEnd,
  replaces: boolean,
  tell: (records: number) => void,
): Promise<Copied> {
  if (from.place === to.place) throw new StoreSetupError(`--from, --to: both are ${from.place}`)
  for (const end of [from, to]) {
    const user = await end.usedBy()
    if (user !== undefined)
      throw new StoreSetupError(`${end.place} is in use by ${user}: stop the service first`)
  }
  const image = await from.sites.image()
  const others = onlyIn(await to.sites.image(), image)
  if (others.length > 0 && !replaces) {
    const more = others.length > 3 ? ` and ${others.length - 3} more` : ''
    throw new StoreSetupError(
      `${to.place} has records that ${from.place} lacks, of ${others.slice(0, 3).join(', ')}${more}: --replace throws them away`,
    )
  }
  await to.sites.replaceAll(image)
  const count = (kind: string) => image.records.filter(({ member }) => member.startsWith(kind)).length
  const copied = { sites: count('s/'), apiKeys: count('k/'), auditEntries: image.audit.length }
  const epochs = await from.epochs()
  if (epochs === undefined)
    return { ...copied, underWay: undefined, why: 'it was taken before, or a restart has lost some of it' }
  if (from.shards !== to.shards)
    return { ...copied, underWay: undefined, why: `${from.shards} shards do not fit into ${to.shards}` }
  await to.clear()
  let underWay = 0
  for await (const entries of from.entries()) {
    await to.write(entries)
    underWay += entries.length
    tell(underWay)
  }
  await from.retire()
  await to.adopt(epochs)
  return { ...copied, underWay }
}

/**
 * Sites and API keys of the target that the source lacks, or has not in that state: each change has an entry in the audit log, so
 * a target whose entries the source has too is an earlier state of it.
 */
function onlyIn(target: SitesImage, source: SitesImage): string[] {
  const members = new Set(source.records.map(({ member }) => member))
  const entries = new Set(source.audit.map(entry => JSON.stringify(entry)))
  const missing = target.records.filter(({ member }) => !members.has(member))
  const changed = target.audit.filter(entry => !entries.has(JSON.stringify(entry)))
  return [
    ...new Set([...missing.map(({ member }) => member.slice(2)), ...changed.map(({ siteKey }) => siteKey)]),
  ]
}

/** Bytes of the times in a record: those of an address log come every 8 bytes, those of a window every 5 after its total. */
const TIMES = { l: [0, 8], c: [4, 5], k: [4, 5] } as const

/** The record with its times, which are modulo 2^24, moved from one clock to another. Records of other kinds have none. */
export function shifted(name: string, value: Buffer, byMs: number): Buffer {
  const [first, step] = TIMES[name[0] as keyof typeof TIMES] ?? [value.length, 1]
  const moved = Buffer.from(value)
  for (let at = first; at < value.length; at += step)
    moved.writeUIntBE((value.readUIntBE(at, 3) + byMs) & 0xffffff, at, 3)
  return moved
}

/** Lists of `size` items. */
export function* inChunks<Item>(items: Iterable<Item>, size: number): Iterable<Item[]> {
  let chunk: Item[] = []
  for (const item of items) {
    chunk.push(item)
    if (chunk.length < size) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}
