/**
 * The form of a batch, which the client (client/) sends, and Redis' scripts (redis/lua/) or the store process (embedded/engine.ts)
 * answer. Numbers are big endian. redis/lua/batch.lua says what each field is for, and each operation's Lua file what follows its letter.
 *
 *   call    EVALSHA, script, number of keys | three keys of the epoch | keys of meters | keys of operations | ...
 *           ... clock of a test | head: ..., number of meters 2, numbers of PRICING | operations: | letter 1 | fields |
 *   reply   | epoch 4 | time of the last check 3 | time 8 | number of batches 8 | answers: | status 1 | first 3 | second 4 | | meters 20 each |
 */

/** The number of this form, of what else the store process answers, and of the saved state. Another number is not understood. */
export const LAYOUT = 1

/** Arguments of a call. */
export const KEYS_AT = 3
const EPOCH_KEYS = 3
export const METERS_AT = KEYS_AT + EPOCH_KEYS
/** Offsets in the head. */
export const METER_COUNT_AT = 24
/** Numbers of domain/pricing.ts, 8 each, so that no script has them. */
export const PRICING_AT = METER_COUNT_AT + 2
export const PRICING_NUMBERS = [
  'networkRecentMs',
  'siteRecentMs',
  'usualMs',
  'tolerated',
  'learnedShare',
  'learnsAllMs',
  'returningProofs',
] as const
export const HEAD_BYTES = PRICING_AT + 8 * PRICING_NUMBERS.length

/** Offsets in a reply. */
export const CHECKED_AT = 4
export const TIME_AT = CHECKED_AT + 3
export const BATCHES_AT = TIME_AT + 8
export const ANSWERS_AT = BATCHES_AT + 8
export const ANSWER_BYTES = 8
/** Offsets in an answer. */
export const FIRST = 1
export const SECOND = 4

/** An operation's meters are two first proofs (domain/meters.ts), then the site, then networks. */
export const SITE_METER = 2

/** An operation's first character. */
export const LETTERS = {
  challenge: 'C',
  solution: 'V',
  takeBack: 'T',
  redemption: 'R',
  refund: 'F',
  peek: 'K',
  probe: 'P',
} as const

/** A status of any operation. */
export const LIMITED = 0
/** The statuses of a solution and of a redemption, as positions. A status that is missing here is of unknown outcome. */
export const NONCES = [undefined, 'spent', 'used', 'untouched'] as const
export const TOKENS = [undefined, 'redeemed', 'used', 'forgotten', 'untouched'] as const
/** The limit that refused, by its number in `second`. */
export const POLICIES = [undefined, 'address', 'address-site', 'api-key'] as const
