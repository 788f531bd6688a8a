/** Request bodies that are no good to anybody, for both endpoints that take one. */

export const BODY_BYTES_MAX = 8192
export const LARGE_BODY_BYTES_MAX = 65_536

export interface HostileBody {
  readonly about: string
  /** From the JSON text of a good body. */
  readonly make: (good: string) => string | Buffer
}

/** The good body with one more member, of which the name and value are given as bytes. */
function withMember(good: string, ...member: (string | Buffer)[]): Buffer {
  return Buffer.concat([`${good.slice(0, -1)},`, ...member, '}'].map(part => Buffer.from(part)))
}

function nested(open: string, middle: string, close: string, depth: number): string {
  return open.repeat(depth) + middle + close.repeat(depth)
}

export const HOSTILE: readonly HostileBody[] = [
  { about: 'empty', make: () => '' },
  { about: 'white space', make: () => ' \n' },
  { about: 'not JSON', make: () => 'nonce=1&counter=2' },
  { about: 'cut off', make: good => good.slice(0, -1) },
  { about: 'followed by another', make: good => good + good },
  { about: 'with a trailing comma', make: good => `${good.slice(0, -1)},}` },
  { about: 'with single quotes', make: good => good.replaceAll('"', "'") },
  { about: 'with a NaN', make: good => withMember(good, '"extra":NaN') },
  { about: 'with a raw control character', make: good => withMember(good, '"extra":"\n"') },
  { about: 'after a byte order mark', make: good => `\uFEFF${good}` },
  { about: 'in UTF-16', make: good => Buffer.from(good, 'utf16le') },
  { about: 'an array', make: () => '[]' },
  { about: 'an array around a good one', make: good => `[${good}]` },
  { about: 'a string', make: good => JSON.stringify(good) },
  { about: 'a number', make: () => '5' },
  { about: 'a boolean', make: () => 'true' },
  { about: 'null', make: () => 'null' },
  { about: 'an empty object', make: () => '{}' },
  { about: 'with a byte that is not UTF-8', make: good => withMember(good, '"extra":"', bytes(0xff), '"') },
  { about: 'with an overlong form', make: good => withMember(good, '"extra":"', bytes(0xc0, 0x80), '"') },
  {
    about: 'with an encoded surrogate',
    make: good => withMember(good, '"extra":"', bytes(0xed, 0xa0, 0x80), '"'),
  },
  { about: 'with UTF-8 cut off', make: good => withMember(good, '"extra":"', bytes(0xe2, 0x82), '"') },
  { about: 'with __proto__', make: good => withMember(good, '"__proto__":{}') },
  { about: 'with __proto__ null', make: good => withMember(good, '"__proto__":null') },
  { about: 'with __proto__ in escapes', make: good => withMember(good, '"\\u005f_proto\\u005F_":{}') },
  {
    about: 'with __proto__ inside environment',
    make: good => withMember(good, '"environment":{"__proto__":{"webdriver":false}}'),
  },
  {
    about: 'with __proto__ in escapes inside environment',
    make: good => withMember(good, '"environment":{"__pr\\u006fto__":{"webdriver":false}}'),
  },
  {
    about: 'with __proto__ inside an array of an unknown field',
    make: good => withMember(good, '"extra":[1,[{"__proto__":1}]]'),
  },
  { about: 'arrays as deep as fit', make: () => nested('[', '', ']', BODY_BYTES_MAX / 2) },
  { about: 'open arrays as deep as fit', make: () => '['.repeat(BODY_BYTES_MAX) },
  {
    about: 'objects as deep as fit',
    make: () => nested('{"a":', '0', '}', Math.floor((BODY_BYTES_MAX - 1) / 6)),
  },
  {
    about: 'with __proto__ at the bottom of 1000 objects',
    make: good => withMember(good, '"extra":', nested('{"a":', '{"__proto__":0}', '}', 1000)),
  },
]

/** For the larger cap. */
export const DEEP: readonly HostileBody[] = [
  { about: '10,000 arrays', make: () => nested('[', '', ']', 10_000) },
  { about: '10,000 objects', make: () => nested('{"a":', '0', '}', 10_000) },
  {
    about: 'with __proto__ below 10,000 objects',
    make: good => withMember(good, '"extra":', nested('{"a":', '{"__proto__":0}', '}', 10_000)),
  },
  {
    about: 'with __proto__ in escapes below 10,000 arrays',
    make: good => withMember(good, '"extra":', nested('[', '{"__\\u0070roto__":0}', ']', 10_000)),
  },
]

/** A good body in which a field's last value is an array, nested. */
export function deepField(field: string, depth: number): HostileBody {
  return {
    about: `with ${field} nested ${depth} deep`,
    make: good => withMember(good, `"${field}":`, nested('[', '', ']', depth)),
  }
}

/** An unknown field, nested; the escape makes the reader look for hidden names all the way down. */
export function deepUnknownField(depth: number): HostileBody {
  return {
    about: `with an unknown field nested ${depth} deep`,
    make: good => withMember(good, '"extra":', nested('{"\\u0061":', '0', '}', depth)),
  }
}

function bytes(...values: number[]): Buffer {
  return Buffer.from(values)
}
