/** Which hash tags the shards of a Cluster have. */

import { Command } from 'ioredis'

const CLUSTER_SLOTS = 16384

/** Hash tags whose slots lie one in each of `count` equal ranges, so that shards spread evenly over any Cluster. */
export function evenlySpreadTags(count: number): string[] {
  const tags: string[] = []
  const slotsPerRange = CLUSTER_SLOTS / count
  for (let candidate = 0; tags.filter(tag => tag !== undefined).length < count; candidate++) {
    const tag = String(candidate)
    const range = Math.floor((new Command('get', [`{${tag}}`]).getSlot() ?? 0) / slotsPerRange)
    tags[range] ??= tag
  }
  return tags
}
