import type { OnStoreCall } from '../store.ts'
import type { Shard } from './shard.ts'

export interface ShardOptions {
  /** Starts every key: `<prefix>:{<tag>}:`. */
  readonly keyPrefix: string
  readonly deadlineMs: number
  /** For tests; the server's own clock if undefined. */
  readonly clock: (() => number) | undefined
  /** A random unsigned 32-bit number, for a shard that has no epoch. */
  readonly newEpoch: () => number
  readonly onChange: (shard: Shard, up: boolean, cause: string) => void
  /** Called when used nonces and redemption records may be lost: challenges and tokens under way will be refused. */
  readonly onForgotten: () => void
  readonly onCall: OnStoreCall | undefined
}
