/** The hash tags of a Cluster's shards, and the slots of keys. */

import { Command } from 'ioredis'

const CLUSTER_SLOTS = 16384

export function slotOf(key: string): number {
  return new Command('get', [key]).getSlot() ?? 0
}

/** Hash tags whose slots lie one in each of `count` equal ranges, so that shards spread evenly over any Cluster. */
export function evenlySpreadTags(count: number): string[] {
  const tags: string[] = []
  const slotsPerRange = CLUSTER_SLOTS / count
  for (let candidate = 0; tags.filter(tag => tag !== undefined).length < count; candidate++) {
    const tag = String(candidate)
    const range = Math.floor(slotOf(`{${tag}}`) / slotsPerRange)
    tags[range] ??= tag
  }
  return tags
}
