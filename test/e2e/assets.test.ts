/** The widget's files over HTTP: ETags, compression, caching, and headers for other origins and strict pages. */

import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { extname, join } from 'node:path'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import type { WidgetFile, WidgetManifest } from '../../src/http/assets.ts'
import { call } from '../harness/http.ts'
import { TestService } from '../harness/service.ts'
import { copyOfBuild } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'

const DIST = new URL('../../dist/widget/', import.meta.url).pathname

const STABLE = 'public, max-age=300, stale-while-revalidate=86400'
const FOR_EVER = 'public, max-age=31536000, immutable'

const service = await TestService.start('embedded', { POWGATE_DEMO: 'off' }) // ends with the file
const manifest: WidgetManifest = JSON.parse(readFileSync(join(DIST, 'manifest.json'), 'utf8'))

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  call(service.url + path, { method, headers })

const content = ({ fileName }: WidgetFile) => readFileSync(join(DIST, fileName))
const named = (name: string) => manifest.files.find(file => file.name === name)!

const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync } as const

test('every file at its stable address and at the one that never changes, in every coding', async () => {
  for (const file of manifest.files) {
    const expected = content(file)
    for (const path of new Set([`/widget/${file.name}`, `/widget/${file.fileName}`])) {
      for (const coding of ['identity', 'gzip', 'br'] as const) {
        const about = `${path} ${coding}`
        const { status, headers, bytes } = await get(path, { 'Accept-Encoding': coding })
        assert.equal(status, 200, about)
        const decode = DECODERS[headers['content-encoding'] as keyof typeof DECODERS]
        // The smallest files are no shorter compressed, and then they are sent as they are.
        if (expected.length > 1000) assert.equal(headers['content-encoding'] ?? 'identity', coding, about)
        assert.ok((decode?.(bytes) ?? bytes).equals(expected), about)
        const expectedHeaders = {
          ...{ 'content-length': String(bytes.length), 'content-type': file.contentType },
          ...{ 'cache-control': path.endsWith(file.name) ? STABLE : FOR_EVER, vary: 'Accept-Encoding' },
          ...{ 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' },
          ...{ 'timing-allow-origin': '*', 'x-content-type-options': 'nosniff' },
        }
        for (const [name, value] of Object.entries(expectedHeaders))
          assert.equal(headers[name], value, `${about} ${name}`)
      }
    }
  }
})

test('each file of the widget has its content type', () => {
  const types = manifest.files.map(({ name, contentType }) => [extname(name), contentType])
  assert.deepEqual(Object.fromEntries(types), {
    '.js': 'text/javascript; charset=utf-8',
    '.wasm': 'application/wasm',
    '.html': 'text/html; charset=utf-8',
    '.json': 'application/json',
    '.ts': 'text/plain; charset=utf-8',
  })
})

test('/widget.js is the widget; /compat/<vendor>.js is kept as long, and other names below it are not there', async () => {
  for (const name of words('widget.js compat-turnstile.js compat-hcaptcha.js compat-recaptcha.js')) {
    const path = `/${name.replace('-', '/')}`
    const { status, headers, bytes } = await get(path)
    assert.deepEqual([status, headers['cache-control']], [200, STABLE], path)
    assert.ok(bytes.equals(content(named(name))), path)
  }
  for (const path of ['/compat/', '/compat/worker.js', `/compat/${named('worker.js').fileName}`])
    assert.equal((await get(path)).status, 404, path)
})

test('another hash of a known name gives the present content, for no cache; a query is ignored', async () => {
  const { headers } = await get(`/widget/${named('worker.js').fileName}?v=2`)
  assert.equal(headers['cache-control'], FOR_EVER)
  for (const name of ['widget.js', 'worker.js', 'simd.wasm', 'frame.html']) {
    const path = `/widget/${name.replace('.', '.0123456789.')}`
    const { status, headers, bytes } = await get(path)
    assert.deepEqual([status, headers['cache-control']], [200, 'no-cache'], path)
    assert.ok(bytes.equals(content(named(name))), path)
    assert.equal(headers['access-control-allow-origin'], '*')
  }
})

test('an unknown path below /widget gives 404 not-found', async () => {
  for (const path of words(
    '/widget /widget/ /widget/other.js /widget/other.0123456789.js',
    '/widget/worker.012345678.js /widget/worker.0123456789A.js /widget/worker.js/',
    '/widget/worker.js.br /widget/manifest.json /widget/..%2fmain.js /widget/constructor',
    '/widget/__proto__ /widget.js/ /Widget.js',
  )) {
    const { status, json } = await get(path)
    assert.equal(status, 404, path)
    assert.equal(json.code, 'not-found', path)
  }
})

test('304 to whoever has the file in the coding that they would get', async () => {
  const path = `/widget/${named('simd.wasm').fileName}`
  const tags = new Map<string, string>()
  for (const coding of ['identity', 'gzip', 'br'])
    tags.set(coding, (await get(path, { 'Accept-Encoding': coding })).headers.etag!)
  assert.equal(new Set(tags.values()).size, 3)
  for (const [coding, etag] of tags) {
    assert.match(etag, /^"[\w-]+"$/)
    for (const [ifNoneMatch, status] of [
      [etag, 304],
      [`W/${etag}`, 304],
      [`"other", W/"another" , ${etag}`, 304],
      ['*', 304],
      ['"other"', 200],
      [tags.get(coding === 'br' ? 'gzip' : 'br')!, 200],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const headers = { 'Accept-Encoding': coding, 'If-None-Match': ifNoneMatch }
        const answer = await get(path, headers, method)
        assert.equal(answer.status, status, `${method} ${coding} ${ifNoneMatch}`)
        assert.equal(answer.headers.etag, etag)
        assert.equal(answer.headers['cache-control'], FOR_EVER)
        assert.equal(answer.headers.vary, 'Accept-Encoding')
        assert.equal(answer.headers['access-control-allow-origin'], '*')
        if (status === 304) {
          assert.equal(answer.bytes.length, 0)
          const { bytes } = await get(path, { 'Accept-Encoding': coding })
          assert.equal(answer.headers['content-length'], String(bytes.length), 'as a 200 would have it')
          assert.equal(answer.headers['content-encoding'], undefined)
        }
      }
    }
  }
})

test('HEAD: the same headers, no body', async () => {
  const headers = { 'Accept-Encoding': 'br' }
  const head = await get('/widget.js', headers, 'HEAD')
  const whole = await get('/widget.js', headers)
  // Answers without a body may end their connection.
  const ofConnection = { date: undefined, connection: undefined }
  assert.deepEqual({ ...head.headers, ...ofConnection }, { ...whole.headers, ...ofConnection })
  assert.equal(head.bytes.length, 0)
})

test('other methods: 405 with Allow', async () => {
  for (const path of ['/widget.js', `/widget/${named('worker.js').fileName}`]) {
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const { status, headers } = await call(service.url + path, { method })
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD, OPTIONS'], `${method} ${path}`)
    }
  }
})

test('a preflight allows any header, for pages whose tracing agent adds its own to every fetch', async () => {
  for (const path of words(
    '/widget.js /widget/worker.js /compat/recaptcha.js /recaptcha/api.js /challenge',
  )) {
    const headers = {
      ...{ Origin: 'https://shop.example', 'Access-Control-Request-Method': 'GET' },
      'Access-Control-Request-Headers': 'baggage,sentry-trace,traceparent',
    }
    const { status, headers: sent } = await call(service.url + path, { method: 'OPTIONS', headers })
    assert.deepEqual([status, sent['access-control-allow-origin']], [200, '*'], path)
    assert.match(sent['access-control-allow-headers'] as string, /(^|, )\*$/)
  }
})

test('cookies of a parent domain, up to 15,000 bytes, keep nobody from the widget; 17,000 give 431', async () => {
  for (const path of ['/widget.js', '/widget/frame.html', '/challenge']) {
    const served = path === '/challenge' ? 400 : 200 // the challenge lacks a site key
    for (const bytes of [4000, 15_000, 17_000]) {
      const { status } = await get(path, { Cookie: `session=${'x'.repeat(bytes)}` })
      assert.equal(status, bytes === 17_000 ? 431 : served, `${bytes} bytes at ${path}`)
    }
  }
})

test('the frame and the worker bring policies of their own, the other files none', async () => {
  const policies = async (name: string) => {
    const { headers } = await get(`/widget/${named(name).fileName}`)
    return ['content-security-policy', 'cross-origin-embedder-policy'].map(header => headers[header])
  }
  assert.deepEqual(await policies('frame.html'), [
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'",
    'require-corp',
  ])
  const frame = await get('/widget/frame.html')
  assert.equal(frame.headers['referrer-policy'], 'no-referrer')
  assert.equal(frame.headers['x-frame-options'], undefined)
  const [workerPolicy, workerEmbedding] = await policies('worker.js')
  assert.match(String(workerPolicy), /script-src 'self' 'wasm-unsafe-eval'/)
  assert.equal(workerEmbedding, 'require-corp')
  for (const name of ['widget.js', 'page.js', 'simd.wasm', 'powgate.d.ts'])
    assert.deepEqual(await policies(name), [undefined, undefined], name)
})

test('200 requests for widget.js leave the rate limit of /challenge untouched', async () => {
  const site = await service.createSite()
  const from = '127.200.0.1'
  for (let count = 0; count < 200; count++)
    assert.equal((await call(`${service.url}/widget.js`, { from })).status, 200)
  const headers = { 'X-Site-Key': site.siteKey }
  assert.equal((await call(`${service.url}/challenge`, { from, headers })).status, 200)
})

test('a service whose widget was not built starts all the same, and says so', async () => {
  const dir = copyOfBuild()
  rmSync(join(dir, 'dist/widget'), { recursive: true })
  const bare = await TestService.start('embedded', { POWGATE_WORKERS: '1' }, join(dir, 'dist/main.js'))
  assert.match(bare.output, /the widget is not built/)
  for (const path of ['/widget.js', '/widget/worker.js'])
    assert.equal((await call(bare.url + path)).status, 404)
})
