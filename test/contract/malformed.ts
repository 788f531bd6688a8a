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

const bodies = (makers: Readonly<Record<string, HostileBody['make']>>): readonly HostileBody[] =>
  Object.entries(makers).map(([about, make]) => ({ about, make }))

export const HOSTILE = bodies({
  empty: () => '',
  'white space': () => ' \n',
  'not JSON': () => 'nonce=1&counter=2',
  'cut off': good => good.slice(0, -1),
  'followed by another': good => good + good,
  'with a trailing comma': good => `${good.slice(0, -1)},}`,
  'with single quotes': good => good.replaceAll('"', "'"),
  'with a NaN': good => withMember(good, '"extra":NaN'),
  'with a raw control character': good => withMember(good, '"extra":"\n"'),
  'after a byte order mark': good => `\uFEFF${good}`,
  'in UTF-16': good => Buffer.from(good, 'utf16le'),
  'an array': () => '[]',
  'an array around a good one': good => `[${good}]`,
  'a string': good => JSON.stringify(good),
  'a number': () => '5',
  'a boolean': () => 'true',
  null: () => 'null',
  'an empty object': () => '{}',
  'with a byte that is not UTF-8': good => withMember(good, '"extra":"', bytes(0xff), '"'),
  'with an overlong form': good => withMember(good, '"extra":"', bytes(0xc0, 0x80), '"'),
  'with an encoded surrogate': good => withMember(good, '"extra":"', bytes(0xed, 0xa0, 0x80), '"'),
  'with UTF-8 cut off': good => withMember(good, '"extra":"', bytes(0xe2, 0x82), '"'),
  'with __proto__': good => withMember(good, '"__proto__":{}'),
  'with __proto__ null': good => withMember(good, '"__proto__":null'),
  'with __proto__ in escapes': good => withMember(good, '"\\u005f_proto\\u005F_":{}'),
  'with __proto__ inside environment': good =>
    withMember(good, '"environment":{"__proto__":{"webdriver":false}}'),
  'with __proto__ in escapes inside environment': good =>
    withMember(good, '"environment":{"__pr\\u006fto__":{"webdriver":false}}'),
  'with __proto__ inside an array of an unknown field': good =>
    withMember(good, '"extra":[1,[{"__proto__":1}]]'),
  'arrays as deep as fit': () => nested('[', '', ']', BODY_BYTES_MAX / 2),
  'open arrays as deep as fit': () => '['.repeat(BODY_BYTES_MAX),
  'objects as deep as fit': () => nested('{"a":', '0', '}', Math.floor((BODY_BYTES_MAX - 1) / 6)),
  'with __proto__ at the bottom of 1000 objects': good =>
    withMember(good, '"extra":', nested('{"a":', '{"__proto__":0}', '}', 1000)),
})

/** For the larger cap. */
export const DEEP = bodies({
  '10,000 arrays': () => nested('[', '', ']', 10_000),
  '10,000 objects': () => nested('{"a":', '0', '}', 10_000),
  'with __proto__ below 10,000 objects': good =>
    withMember(good, '"extra":', nested('{"a":', '{"__proto__":0}', '}', 10_000)),
  'with __proto__ in escapes below 10,000 arrays': good =>
    withMember(good, '"extra":', nested('[', '{"__\\u0070roto__":0}', ']', 10_000)),
})

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
