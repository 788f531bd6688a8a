/** Parsing of request headers, in one pass and by name; Accept-Encoding and If-None-Match as tables. */

import { App } from 'uWebSockets.js'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Coding, matchesEtag, preferredCoding } from '../../src/http/content.ts'
import { readHead, readProxyHead } from '../../src/http/request-headers.ts'
import { seeded } from '../harness/arbitraries.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { listenWith } from '../harness/refusing-server.ts'
import { words } from '../harness/values.ts'

const CODINGS = ['br', 'gzip', 'identity'] as const

/** Accept-Encoding headers by the coding that each chooses. Where nothing fits that is identity, even if refused: a 406 would help nobody. */
const PREFERENCES: Readonly<Record<Coding, readonly string[]>> = {
  br: [
    ...['br', 'GZIP, BR', 'gzip, deflate, br, zstd', '*', 'gzip;q=0.5, br;q=0.5', 'br;q=0.001'],
    'identity;q=0.5, br;q=0.5',
  ],
  gzip: [
    ...['gzip', 'x-gzip', 'gzip, deflate', 'br;q=0, *', 'gzip;q=1.0, br;q=0.9', 'identity;q=0, gzip'],
    'br ; q=0.1 , gzip ; Q=0.2',
  ],
  identity: [
    ...['', 'deflate', 'identity', 'br;q=0', 'br;q=0.000, gzip;q=0', 'identity;q=1, br;q=0.5'],
    ...['identity;q=0', '*;q=0', 'br;q=2', 'br;q=much', 'br;q=', ',,;;,'],
  ],
}

test('Accept-Encoding: the greatest weight wins, of equals the shortest file', () => {
  for (const [coding, headers] of Object.entries(PREFERENCES))
    for (const header of headers) assert.equal(preferredCoding(header, CODINGS), coding, header)
})

test('Accept-Encoding: a coding that the file does not have is not chosen', () => {
  assert.equal(preferredCoding('br, gzip', ['gzip', 'identity']), 'gzip')
  assert.equal(preferredCoding('*', ['identity']), 'identity')
})

test('If-None-Match: an entity tag is found in a list, by weak comparison', () => {
  for (const header of ['*', ' * ', '"a,b"', 'W/"a,b"', '"x", "a,b"', '"x",W/"a,b" , "y"'])
    assert.ok(matchesEtag(header, '"a,b"'), header)
  for (const header of ['', '"x"', '"a"', 'a,b', '"a,b', '"A,B"', '"x*"'])
    assert.ok(!matchesEtag(header, '"a,b"'), header)
})

const NAMES = words('X-Site-Key Origin Sec-Fetch-Site Authorization Content-Type Connection X-Other')
const FIELDS = ['siteKey', 'origin', 'fetchSite', 'authorization', 'contentType', 'connection'] as const

/** Reading by name leaves out what endpoints for pages, or for backends, do not need. */
const UNREAD = { forPages: ['authorization'], forBackends: ['siteKey'] }

async function startServer(isCrossOrigin: boolean) {
  // FIELDS, which both ways read of a GET. (Of a POST, reading by name has `expect` and `framing` too.)
  const read: Record<'byName' | 'inOnePass', Partial<Record<string, string>>> = { byName: {}, inOnePass: {} }
  const fieldsOf = (head: { [field in (typeof FIELDS)[number]]?: string | undefined }) =>
    Object.fromEntries(FIELDS.map(field => [field, head[field] ?? ''])) // absent is empty, or undefined in one pass
  const app = App().any('/*', (response, request) => {
    read.inOnePass = fieldsOf(readProxyHead(request))
    read.byName = fieldsOf(readHead(request, isCrossOrigin))
    response.end('read')
  })
  return { ...(await listenWith(app)), read }
}

test('property: headers read by name and in one pass are the same, whatever comes twice, empty or spelled oddly', async () => {
  for (const isCrossOrigin of [true, false]) {
    const server = await startServer(isCrossOrigin)
    const connection = await RawConnection.open(server.port)
    const spelled = fc.constantFrom(...NAMES.flatMap(name => [name, name.toLowerCase(), name.toUpperCase()]))
    // None is `close`, which would end the connection.
    const value = fc.constantFrom('', ' ', ' a ', 'a, b', ...words('a keep-alive same-origin \xe9\xff " \t.'))
    const line = fc.tuple(spelled, value).map(([name, text]) => `${name}:${text}\r\n`)
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 12 }), async lines => {
        const answer = await connection.request(`GET / HTTP/1.1\r\nHost: powgate\r\n${lines.join('')}\r\n`)
        assert.equal(answer?.body, 'read')
        const { byName, inOnePass } = server.read
        const unread = isCrossOrigin ? UNREAD.forPages : UNREAD.forBackends
        for (const field of FIELDS.filter(name => !unread.includes(name)))
          assert.equal(inOnePass[field], byName[field], field)
      }),
      seeded(2000),
    )
    connection.close()
    server.stop()
  }
})
