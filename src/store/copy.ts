/**
 * `powgate store copy`, while no service uses either store. After sites, API keys and audit log comes the state, and the epoch
 * last: the source loses it first, so no token is ever valid at both.
 */

import type { Members, SitesImage } from './members.ts'
import { StoreSetupError } from './store.ts'

/** As Redis has it: by the wall clock. */
export interface StateEntry {
  readonly shard: number
  /** As in redis/requests.ts: `l:<address>`, ... */
  readonly name: string
  readonly value: Buffer
  readonly restMs: number
}

export interface CopyEnd {
  readonly place: string
  readonly sites: Members
  readonly shards: number
  /** Services that use it, in words. */
  usedBy(): Promise<string | undefined>
  /** By shard; undefined if the state is gone, or cannot be trusted. */
  epochs(): Promise<readonly number[] | undefined>
  entries(): AsyncIterable<readonly StateEntry[]>
  write(entries: readonly StateEntry[]): Promise<void>
  /** Removes the state. */
  clear(): Promise<void>
  adopt(epochs: readonly number[]): Promise<void>
  /** The next service draws new epochs. */
  retire(): Promise<void>
  close(): Promise<void>
}

/** See NOTED_AHEAD_MS of redis/copy.ts. */
export const START_SECONDS = 50

interface Copied {
  readonly sites: number
  readonly apiKeys: number
  readonly auditEntries: number
  /** Records of the state, if they could be taken. */
  readonly underWay: number | undefined
  readonly why?: string
}

/**
 * A copy that was cut off can be repeated.
 *
 * @param replaces whether to discard what only the target has
 * @param tell gets the number of state records so far
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
  const kept = image.records.filter(({ json }) => JSON.parse(json).deletedAt === undefined)
  const count = (kind: string) => kept.filter(({ member }) => member.startsWith(kind)).length
  const copied = { sites: count('s/'), apiKeys: count('k/'), auditEntries: image.audit.length }
  const epochs = await from.epochs()
  if (epochs === undefined)
    return { ...copied, underWay: undefined, why: 'it was taken before, or a restart has lost some of it' }
  if (from.shards !== to.shards)
    return { ...copied, underWay: undefined, why: `${from.shards} shards do not fit into ${to.shards}` }
  await to.clear()
  let underWay = 0
  for await (const entries of from.entries()) {
    const kept = entries.filter(({ restMs }) => restMs > 0)
    await to.write(kept)
    underWay += kept.length
    tell(underWay)
  }
  await from.retire()
  await to.adopt(epochs)
  return { ...copied, underWay }
}

/**
 * Sites and API keys that the source lacks, or that were changed at the target: each change has an audit entry, and an earlier
 * copy has none that the source lacks.
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

/** Where times stand: every 8 bytes in an address log, every 5 in a window, behind its total. */
const TIMES = { l: [0, 8], c: [4, 5], k: [4, 5] } as const

/** Moves the times, modulo 2^24, to another clock. */
export function shifted(name: string, value: Buffer, byMs: number): Buffer {
  const [first, step] = TIMES[name[0] as keyof typeof TIMES] ?? [value.length, 1]
  const moved = Buffer.from(value)
  for (let at = first; at < value.length; at += step)
    moved.writeUIntBE((value.readUIntBE(at, 3) + byMs) & 0xffffff, at, 3)
  return moved
}

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
