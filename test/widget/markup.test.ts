/**
 * Only trusted code runs with the page's rights: no file that injected markup names, and from a pinned build only its
 * own files.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { beforeEach, test } from 'node:test'
import type { WidgetManifest } from '../../src/http/assets.ts'
import { FaultyProxy } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { errorCode, type OpenOptions, scriptTag, startStage, untilState } from '../harness/widget.ts'

const { service, gateway, pages, open } = await startStage()
/** Another origin. It serves a widget that works, lest a test pass because a foreign script is broken. */
const evil = await FaultyProxy.start(service.port)

const DIST = new URL('../../dist/widget/', import.meta.url)
const read = (fileName: string) => readFileSync(new URL(fileName, DIST), 'utf8')
const manifest: WidgetManifest = JSON.parse(read('manifest.json'))
const fileOf = (name: string) => manifest.files.find(file => file.name === name)!.fileName

/** All that such a script loads may run, wherever that is from. */
const STRICT_DYNAMIC = "script-src 'nonce-abc' 'strict-dynamic'"
const NONCE_ONLY = "script-src 'nonce-abc'"

const tag = (attributes = '') => scriptTag(gateway, `nonce="abc" ${attributes}`)
const pinnedTag = `<script src="${gateway.origin()}/widget/${fileOf('widget.js')}" integrity="${manifest.integrity}" crossorigin nonce="abc"></script>`

beforeEach(() => {
  evil.recover()
  evil.requests.length = 0
})

/** A page whose element notes where it solved. */
function openWith(attributes: string, script: string, policy?: string) {
  const noteMode = "addEventListener('verified', event => { window.mode = event.detail.mode }, true)"
  const options: OpenOptions = { script, visit: { prepare: page => page.addInitScript(noteMode) } }
  return open(attributes, policy === undefined ? options : { ...options, policy })
}

/** Opens a page that comes to be verified, and tells where it solved. */
async function modeOf(...[attributes, script, policy]: Parameters<typeof openWith>): Promise<unknown> {
  const { page } = await openWith(attributes, script, policy)
  await untilState(page, 'verified').catch(() => assert.fail(`not verified: ${attributes} ${script}`))
  return page.evaluate('window.mode')
}

/** Opens a page that comes to fail, and tells the error's code. */
async function failureOf(...[attributes, script, policy]: Parameters<typeof openWith>): Promise<unknown> {
  const { page } = await openWith(attributes, script, policy)
  await untilState(page, 'failed').catch(() => assert.fail(`not failed: ${attributes} ${script}`))
  return errorCode(page)
}

/** Workers and modules are called so; an image or a blocked script asks for widget.js at most. */
const codeFrom = ({ requests }: { requests: readonly string[] }) =>
  requests.filter(asked => /\/widget\/(worker|page|hashwx\S*)\.\w+\.js$/.test(asked))

function assertOnlyFromGateway(): void {
  assert.deepEqual(codeFrom(evil), [])
  assert.ok(codeFrom(gateway).length > 0)
}

const SOLVERS = [
  ['blob', undefined],
  ['page', STRICT_DYNAMIC],
] as const

for (const [mode, policy] of SOLVERS) {
  test(`${mode}: an image that is named like the property that names the script`, async () => {
    const image = `<img name="currentScript" src="${evil.origin()}/widget.js" alt="">`
    assert.equal(await modeOf(`solver="${mode}"`, image + tag(), policy), mode)
    assertOnlyFromGateway()
  })

  test(`${mode}: a second module of another origin, blocked or not found, and its endpoint`, async () => {
    const scripts = `${tag('type="module"')}<script type="module" src="${evil.origin()}/widget.js"></script>`
    if (policy === undefined) evil.fail({ path: '/widget.js', answer: { status: 404 } })
    assert.equal(await modeOf(`endpoint="${evil.origin()}" solver="${mode}"`, scripts, policy), mode)
    assertOnlyFromGateway()
  })

  test(`${mode}: a bundled copy believes no endpoint`, async () => {
    pages.add('/app.js', read(fileOf('widget.js')))
    const bundle = '<script src="/app.js" nonce="abc"></script>'
    assert.equal(await failureOf(`endpoint="${evil.origin()}" solver="${mode}"`, bundle, policy), 'assets')
    assert.deepEqual(codeFrom(evil), [])
    assert.equal(await modeOf(`endpoint="${evil.origin()}"`, bundle, policy), 'frame')
  })
}

test('blob: HashWX without WebAssembly, and its endpoint', async () => {
  const { siteKey } = await service.createSite({
    puzzle: 'hashwx',
    difficulty: { base: 16, min: 16, max: 16 },
  })
  evil.fail({ path: `/widget/${fileOf('hashwx.wasm')}`, times: 100, answer: { status: 404 } })
  const { page } = await open(`endpoint="${evil.origin()}" solver="blob"`, { siteKey })
  await untilState(page, 'verified')
  assertOnlyFromGateway()
  assert.ok(codeFrom(gateway).some(asked => asked.includes('hashwx-script')))
})

test('a base address after a script that was named relative to the page', async () => {
  pages.add('/widget.js', read(fileOf('widget.js')))
  pages.add(`/widget/${fileOf('page.js')}`, read(fileOf('page.js')))
  const scripts = `<script src="/widget.js" defer nonce="abc"></script><base href="${evil.origin()}/">`
  assert.equal(await modeOf(`solver="page" endpoint="${gateway.origin()}"`, scripts, STRICT_DYNAMIC), 'page')
  assert.deepEqual(codeFrom(evil), [])
  assert.equal(codeFrom(pages).length, 1)
})

test('worker-src: only a file of the worker’s own name', async () => {
  for (const path of [
    '/evil.js',
    '/evil.js?/powgate-worker.js',
    '/evil.js#/powgate-worker.js',
    '/powgate-worker.js/../evil.js',
    '/not-powgate-worker.js',
  ]) {
    assert.equal(await modeOf(`worker-src="${path}"`, tag()), 'frame', path)
    assert.ok(!pages.requests.some(asked => asked.endsWith('.js')), path)
  }
  for (const path of [
    '/powgate-worker.js?v=2',
    '/captcha/widget/worker.js',
    'powgate-worker.0123456789.js',
  ]) {
    const { pathname } = new URL(path, pages.origin())
    pages.add(pathname, read(fileOf('worker.js')))
    assert.equal(await modeOf(`worker-src="${path}"`, tag()), 'worker', path)
  }
})

test('an endpoint on the page’s own origin brings in no worker from there', async () => {
  await openWith('endpoint="/uploads" solver="worker"', tag())
  // The last resort: by then the worker was tried.
  await eventually(60_000, 'the page script', () => codeFrom(gateway).find(asked => asked.includes('/page.')))
  assert.deepEqual(codeFrom(pages), [])
})

/** Serves what a service would that somebody has taken over: the script does what it should, and something else before. */
function alter(name: 'worker.js' | 'page.js'): void {
  const headers = { 'Content-Type': 'text/javascript' }
  const body = `0;${read(fileOf(name))}`
  gateway.fail({ path: `/widget/${fileOf(name)}`, times: 100, answer: { status: 200, headers, body } })
}

test('pinned: works with a nonce alone, and with Trusted Types', async () => {
  const trustedTypes = "; require-trusted-types-for 'script'; trusted-types powgate"
  assert.equal(await modeOf('solver="blob"', pinnedTag), 'blob')
  assert.equal(await modeOf('solver="page"', pinnedTag, NONCE_ONLY), 'page')
  assert.equal(await modeOf('solver="page"', pinnedTag, STRICT_DYNAMIC + trustedTypes), 'page')
})

test('pinned: a worker of another build is no blob worker', async () => {
  alter('worker.js')
  assert.equal(await modeOf('solver="blob"', tag()), 'blob')
  assert.equal(await modeOf('solver="blob"', pinnedTag), 'page')
})

test('pinned: a page script of another build does not run, also if injected markup has loaded it before', async () => {
  alter('page.js')
  assert.equal(await modeOf('solver="page"', tag()), 'page')
  assert.equal(await failureOf('solver="page"', pinnedTag), 'assets')
  const preload = `<link rel="modulepreload" href="${gateway.origin()}/widget/${fileOf('page.js')}">`
  assert.equal(await failureOf('solver="page"', preload + pinnedTag), 'assets')
})
