/**
 * The form of a batch, which the client (client/) sends, and Redis' scripts (redis/lua/) or the store process (embedded/engine.ts)
 * answer. In these layouts a number after a field is its size in bytes; numbers are big endian.
 *
 *   call    EVALSHA, script, number of keys | three keys of the epoch | keys of meters | keys of operations | ...
 *           ... a test's time, else empty | head | operations: | letter 1 | fields |
 *   head    | next epoch 4 | time of the last check 4 | expected time 4 | last epoch 4 | batches seen 8 | meters 2 |
 *   reply   | epoch 4 | time of the last check 3 | time 8 | number of batches 8 | answers: | status 1 | first 3 | second 4 | | meters 20 each |
 *
 * redis/lua/epoch.lua says what the head's times are for. client/requests.ts lists the letters with their Lua files, and `first` and
 * `second` of their answers; the headers of these files say the rest; P is the probe (probe-1.lua).
 */

/** The version of this form, of what else the store process answers, and of the saved state. No other version is understood. */
export const LAYOUT = 1

/** Positions of arguments in a call: of the first key, and of the first meter's key. */
export const KEYS_AT = 3
const EPOCH_KEYS = 3
export const METERS_AT = KEYS_AT + EPOCH_KEYS

/** Stands in the head for a time that is not known. Milliseconds modulo 2^24 fit in 3 bytes; with 4, no time is equal to this. */
export const NO_TIME = 2 ** 32 - 1
/** Stands in the head for the time of the last check: since the last reply, the shard's slot was between two nodes of a Cluster. */
export const SLOT_MOVED = NO_TIME - 1
/** Offsets in the head. */
export const HEAD = {
  nextEpoch: 0,
  checked: 4,
  expected: 8,
  epoch: 12,
  batches: 16,
  meterCount: 24,
} as const
export const HEAD_BYTES = HEAD.meterCount + 2

/** Offsets in a reply. */
export const CHECKED_AT = 4
export const TIME_AT = CHECKED_AT + 3
export const BATCHES_AT = TIME_AT + 8
export const ANSWERS_AT = BATCHES_AT + 8
export const ANSWER_BYTES = 8
/** Offsets in an answer. What `first` and `second` mean differs by operation. */
export const FIRST_AT = 1
export const SECOND_AT = 4

/**
 * The position of the site's meter among an operation's meters; those of networks follow. Before it are two that keep a time in `usual`:
 * 0 when the shard's first proof came, 1 when the first one came under the present names of networks.
 */
export const SITE_METER = 2

/** Statuses that all operations share: a limit refused it, or it was done. Each operation may have more. */
export const [LIMITED, DONE] = [0, 1]
/** The limit that refused, by its number in `second`, from 1. JUNK is added if its window is that of junk. */
export const POLICIES = [undefined, 'address', 'address-site', 'api-key'] as const
export const JUNK = POLICIES.length

/** Numbers as text of one-byte characters, big endian. Higher bits are left out. */
export function uint16Text(value: number): string {
  return String.fromCharCode((value >>> 8) & 0xff, value & 0xff)
}

export function uint24Text(value: number): string {
  return String.fromCharCode((value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff)
}

export function uint32Text(value: number): string {
  return String.fromCharCode(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff)
}
