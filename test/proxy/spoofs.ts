/** Header lines by which a client may try to be somebody else, or a proxy may be misread. */

export interface Spoof {
  readonly about: string
  /** As they go out, in Latin-1. */
  readonly lines: readonly string[]
  /**
   * Whose request it is when a trusted proxy sends the lines; `peer`: the proxy's own. `refused`: the HTTP server takes no
   * such request at all.
   */
  readonly client: string
}

const xff = (value: string) => `X-Forwarded-For: ${value}`

function row(about: string, lines: string | readonly string[], client: string): Spoof {
  return { about, lines: typeof lines === 'string' ? [lines] : lines, client }
}

/** Trusted besides the peer, for chains of several proxies. */
export const TRUSTED_RANGE = '10.0.0.0/8'

const LISTS: readonly Spoof[] = [
  row('one address', xff('203.0.113.1'), '203.0.113.1'),
  row('two: the last', xff('198.51.100.1, 203.0.113.1'), '203.0.113.1'),
  row('no space', xff('198.51.100.1,203.0.113.1'), '203.0.113.1'),
  row('two lines', [xff('198.51.100.1'), xff('203.0.113.1')], '203.0.113.1'),
  row('the two lines in the other order', [xff('203.0.113.1'), xff('198.51.100.1')], '198.51.100.1'),
  row(
    'lines with lists',
    [xff('1.1.1.1, 2.2.2.2'), xff('3.3.3.3, 203.0.113.1'), xff('10.1.1.1')],
    '203.0.113.1',
  ),
  row(
    'one line between others',
    ['A: b', xff('203.0.113.1'), 'C: d', xff('10.1.1.1'), 'E: f'],
    '203.0.113.1',
  ),
  row('a name in capitals', 'X-FORWARDED-FOR: 203.0.113.1', '203.0.113.1'),
  row('names in two cases', [xff('198.51.100.1'), 'x-forwarded-for: 203.0.113.1'], '203.0.113.1'),
  row('a name with underscores', 'X_Forwarded_For: 203.0.113.1', 'peer'),
  row('no space after the colon', 'X-Forwarded-For:203.0.113.1', '203.0.113.1'),
  row('many lines', Array<string>(60).fill(xff('203.0.113.1')), '203.0.113.1'),
  row('more lines than the server takes', Array<string>(120).fill(xff('203.0.113.1')), 'refused'),
]

const CHAINS: readonly Spoof[] = [
  row('proxies are passed over', xff('203.0.113.1, 10.1.1.1, 10.2.2.2'), '203.0.113.1'),
  row('left of the first stranger nothing counts', xff('10.9.9.9, 203.0.113.1, 10.1.1.1'), '203.0.113.1'),
  row('nothing but proxies: the first', xff('10.1.1.1, 10.2.2.2'), '10.1.1.1'),
  row('a mapped proxy is passed over', xff('203.0.113.1, ::ffff:10.1.1.1'), '203.0.113.1'),
  row('a proxy with its port', xff('203.0.113.1, 10.1.1.1:443'), '203.0.113.1'),
  row('an address of loopback', xff('127.0.0.1'), '127.0.0.1'),
  row('1,000 hops of strangers', xff('::,'.repeat(999).concat('::1')), '::1'),
  row('1,000 hops, the last the only stranger', xff(`203.0.113.1,${'::,'.repeat(998)}::2`), '::2'),
  row('400 proxies', xff('10.1.1.1,'.repeat(399).concat('10.1.1.1')), 'peer'),
  row('32 hops', xff(`203.0.113.1${',10.1.1.1'.repeat(31)}`), '203.0.113.1'),
  row('33 hops', xff(`203.0.113.1${',10.1.1.1'.repeat(32)}`), 'peer'),
  row('more bytes than the server takes', xff('198.51.100.1,'.repeat(1000)), 'refused'),
]

const EMPTY: readonly Spoof[] = [
  row('empty', xff(''), 'peer'),
  row('spaces alone', xff('      '), 'peer'),
  row('a comma', xff(','), 'peer'),
  row('commas', xff(',,,,'), 'peer'),
  row('a trailing comma', xff('203.0.113.1,'), 'peer'),
  row('a trailing comma and a space', xff('203.0.113.1, '), 'peer'),
  row('a leading comma', xff(',203.0.113.1'), '203.0.113.1'),
  row('an empty entry on the way', xff('203.0.113.1,,10.1.1.1'), 'peer'),
  row('an empty entry left of it', xff('198.51.100.1,,203.0.113.1'), '203.0.113.1'),
  row('an empty line before', [xff(''), xff('203.0.113.1')], '203.0.113.1'),
  row('an empty line after', [xff('203.0.113.1'), xff('')], 'peer'),
]

const FORMS: readonly Spoof[] = [
  row('a port', xff('203.0.113.1:8080'), '203.0.113.1'),
  row('an empty port', xff('203.0.113.1:'), 'peer'),
  row('a port that is none', xff('203.0.113.1:http'), 'peer'),
  row('a port of six digits', xff('203.0.113.1:100000'), 'peer'),
  row('IPv6 as it is', xff('2001:db8::1'), '2001:db8::1'),
  row('IPv6 in capitals and long', xff('2001:0DB8:0000:0000:0000:0000:0000:0001'), '2001:db8::1'),
  row('brackets', xff('[2001:db8::1]'), '2001:db8::1'),
  row('brackets and a port', xff('[2001:db8::1]:443'), '2001:db8::1'),
  row('IPv6 and a port without brackets is another IPv6', xff('2001:db8::1:443'), '2001:db8::1:443'),
  row('an open bracket', xff('[2001:db8::1'), 'peer'),
  row('a closing bracket', xff('2001:db8::1]'), 'peer'),
  row('two brackets', xff('[[2001:db8::1]]'), 'peer'),
  row('IPv4 in brackets', xff('[203.0.113.1]'), '203.0.113.1'),
  row('a zone', xff('fe80::1%eth0'), 'peer'),
  row('a zone in brackets', xff('[fe80::1%25eth0]:80'), 'peer'),
  row('IPv6 of nine groups', xff('1:2:3:4:5:6:7:8:9'), 'peer'),
  row('two compressions', xff('2001::db8::1'), 'peer'),
  row('mapped IPv4', xff('::ffff:203.0.113.1'), '203.0.113.1'),
  row('mapped IPv4 in hexadecimal', xff('::ffff:cb00:7101'), '203.0.113.1'),
  row('mapped IPv4 in full', xff('0000:0000:0000:0000:0000:FFFF:CB00:7101'), '203.0.113.1'),
  row('mapped IPv4, uncompressed and dotted', xff('0:0:0:0:0:ffff:203.0.113.1'), '203.0.113.1'),
  row('mapped IPv4 in brackets with a port', xff('[::ffff:203.0.113.1]:80'), '203.0.113.1'),
  row('compatible IPv4 is IPv6', xff('::203.0.113.1'), '::cb00:7101'),
  row('translated IPv4 is IPv6', xff('64:ff9b::203.0.113.1'), '64:ff9b::cb00:7101'),
  row('octal', xff('0313.0.0161.01'), 'peer'),
  row('a leading zero', xff('203.0.113.01'), 'peer'),
  row('hexadecimal', xff('0xcb.0x00.0x71.0x01'), 'peer'),
  row('one number', xff('3405803777'), 'peer'),
  row('one hexadecimal number', xff('0xcb007101'), 'peer'),
  row('three parts', xff('203.0.28929'), 'peer'),
  row('two parts', xff('127.1'), 'peer'),
  row('five parts', xff('203.0.113.1.1'), 'peer'),
  row('256', xff('203.0.113.256'), 'peer'),
  row('a sign', xff('+203.0.113.1'), 'peer'),
  row('a trailing dot', xff('203.0.113.1.'), 'peer'),
  row('a prefix', xff('203.0.113.1/32'), 'peer'),
  row('quotes', xff('"203.0.113.1"'), 'peer'),
  row('a name', xff('localhost'), 'peer'),
  row('unknown', xff('unknown'), 'peer'),
  row('an identifier', xff('_hidden'), 'peer'),
]

const BYTES: readonly Spoof[] = [
  row('spaces around', xff('   203.0.113.1   '), '203.0.113.1'),
  row('tabs around', xff('\t203.0.113.1\t'), '203.0.113.1'),
  row('a tab before the comma', xff('203.0.113.1\t,\t10.1.1.1'), '203.0.113.1'),
  row('a space inside', xff('203.0.113. 1'), 'peer'),
  row('two by a space', xff('198.51.100.1 203.0.113.1'), 'peer'),
  row('two by a semicolon', xff('198.51.100.1; 203.0.113.1'), 'peer'),
  row('a no-break space inside', xff('203.0.113.1\xa0, 10.1.1.1'), 'peer'),
  row('a zero-width space inside', xff('203.0.113.1\xe2\x80\x8b, 10.1.1.1'), 'peer'),
  row('full-width digits', xff('203.0.113.\xef\xbc\x91, 10.1.1.1'), 'peer'),
  row('a vertical tab', xff('203.0.113.1\x0b, 10.1.1.1'), 'refused'),
  row('a NUL', xff('203.0.113.1\x00'), 'refused'),
  row('a lone line feed', `${xff('198.51.100.1')}\n${xff('203.0.113.1')}`, 'refused'),
  row('a lone carriage return', `${xff('198.51.100.1')}\r${xff('203.0.113.1')}`, 'refused'),
  row('a folded line', [xff('198.51.100.1'), ' , 203.0.113.1'], 'refused'),
  row('a space before the colon', 'X-Forwarded-For : 203.0.113.1', 'refused'),
  row('a space before the name', ' X-Forwarded-For: 203.0.113.1', 'refused'),
  row('very long', xff('1'.repeat(3900)), 'peer'),
  row('very long, of dots', xff('.'.repeat(3900)), 'peer'),
  row('very long, of brackets', xff('['.repeat(3900)), 'peer'),
]

const OTHER_HEADERS: readonly Spoof[] = [
  'Forwarded: for=203.0.113.1',
  'Forwarded: for="[2001:db8::1]:80";proto=https, for=203.0.113.1',
  'X-Real-IP: 203.0.113.1',
  'X-Client-IP: 203.0.113.1',
  'X-Forwarded: 203.0.113.1',
  'Forwarded-For: 203.0.113.1',
  'X-Cluster-Client-IP: 203.0.113.1',
  'X-Originating-IP: 203.0.113.1',
  'X-Remote-Addr: 203.0.113.1',
  'CF-Connecting-IP: 203.0.113.1',
  'True-Client-IP: 203.0.113.1',
  'Fastly-Client-IP: 203.0.113.1',
  'Fly-Client-IP: 203.0.113.1',
  'X-Appengine-User-IP: 203.0.113.1',
  'X-Azure-ClientIP: 203.0.113.1',
  'Via: 1.1 203.0.113.1',
  'Client-IP: 203.0.113.1',
].map(line => row(line, line, 'peer'))

const REQUEST_IDS: readonly Spoof[] = [
  row('X-Request-Id', 'X-Request-Id: 203.0.113.1', 'peer'),
  row('X-Request-Id of quotes', 'X-Request-Id: "}\\n{"ip":"203.0.113.1"', 'peer'),
  row('X-Request-Id that goes on', 'X-Request-Id: a%0d%0aX-Forwarded-For:%20203.0.113.1', 'peer'),
  row('X-Request-Id, very long', `X-Request-Id: ${'a'.repeat(3900)}`, 'peer'),
  row('X-Request-Id, not ASCII', 'X-Request-Id: a\xff\xfeb', 'peer'),
]

export const SPOOFS: readonly Spoof[] = [
  ...LISTS,
  ...CHAINS,
  ...EMPTY,
  ...FORMS,
  ...BYTES,
  ...OTHER_HEADERS,
  ...REQUEST_IDS,
]
