/**
 * Only trusted code runs with the page's rights: no file that injected markup names, and from a pinned build only its
 * own files.
 */

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { VisitOptions } from '../harness/browser.ts'
import { FaultyProxy } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { ALWAYS_EASY } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import {
  alter,
  builtFile,
  errorCode,
  inState,
  pinnedTag,
  scriptTag,
  startStage,
  WITH_CLOCK,
} from '../harness/widget.ts'

const { service, gateway, pages, open } = await startStage()
/** The service at another address, for an attacker's origin. Its widget works, lest a test pass because a foreign script is broken. */
const evil = await FaultyProxy.start(service.port)

/** All that such a script loads may run, wherever that is from. */
const STRICT_DYNAMIC = "script-src 'nonce-abc' 'strict-dynamic'"
const NONCE_ONLY = "script-src 'nonce-abc'"

const tag = (attributes = '') => scriptTag(gateway, `nonce="abc" ${attributes}`)
const pinned = pinnedTag(gateway, 'nonce="abc"')

beforeEach(() => {
  evil.recover()
  evil.requests.length = 0
})

function openWith(attributes: string, script: string, policy?: string, visit: VisitOptions = {}) {
  return open(attributes, { script, visit, ...(policy !== undefined && { policy }) })
}

/** Where a page that comes to be verified solved. */
async function modeOf(attributes: string, script: string, policy?: string): Promise<unknown> {
  const noteMode = "addEventListener('verified', event => { window.mode = event.detail.mode }, true)"
  const prepare = (page: Page) => page.addInitScript(noteMode)
  const opened = inState('verified', openWith(attributes, script, policy, { prepare }))
  const { page } = await opened.catch(() => assert.fail(`not verified: ${attributes} ${script}`))
  return page.evaluate('window.mode')
}

/** The code of the error of a page that comes to fail. It tries again after up to 8.5 s, which its clock passes at once. */
async function failureOf(attributes: string, script: string, policy?: string): Promise<unknown> {
  const { page } = await openWith(attributes, script, policy, WITH_CLOCK)
  await eventually(60_000, `failed: ${attributes} ${script}`, async () => {
    await page.clock.fastForward(8500)
    return (await page.locator('pow-gate:state(failed)').count()) > 0
  })
  return errorCode(page)
}

/** The files that an element loads to solve. Not widget.js, which an image or a blocked script asks for too. */
const codeFrom = ({ requests }: { requests: readonly string[] }) =>
  requests.filter(asked => /\/widget\/(worker|page|hashwx\S*)\.\w+\.js$/.test(asked))

function assertOnlyFromGateway(): void {
  assert.deepEqual(codeFrom(evil), [])
  assert.ok(codeFrom(gateway).length > 0)
}

/** Modes in which code runs with the page's rights, and a policy that allows each. */
const MODES = [
  ['blob', undefined],
  ['page', STRICT_DYNAMIC],
] as const

for (const [mode, policy] of MODES) {
  test(`${mode}: an image that is named currentScript, as the property is, brings in no code`, async () => {
    const image = `<img name="currentScript" src="${evil.origin()}/widget.js" alt="">`
    assert.equal(await modeOf(`solver="${mode}"`, image + tag(), policy), mode)
    assertOnlyFromGateway()
  })

  test(`${mode}: a second module that is blocked or not found, and an endpoint of its origin, bring in no code`, async () => {
    // A module does not know its own tag. A widget that looked for it would find this other one, which the policy blocks; without a
    // policy it is not found.
    const scripts = `${tag('type="module"')}<script type="module" src="${evil.origin()}/widget.js"></script>`
    if (policy === undefined) evil.fail({ path: '/widget.js', answer: { status: 404 } })
    assert.equal(await modeOf(`endpoint="${evil.origin()}" solver="${mode}"`, scripts, policy), mode)
    assertOnlyFromGateway()
  })

  test(`${mode}: a bundled copy takes no code from an endpoint, but for a frame, which has not the page's rights`, async () => {
    pages.add('/app.js', builtFile('widget.js').text) // by this name, so the widget cannot tell which service it came from
    const bundle = '<script src="/app.js" nonce="abc"></script>'
    assert.equal(await failureOf(`endpoint="${evil.origin()}" solver="${mode}"`, bundle, policy), 'assets')
    assert.deepEqual(codeFrom(evil), [])
    assert.equal(await modeOf(`endpoint="${evil.origin()}"`, bundle, policy), 'frame')
  })
}

// WebAssembly has no rights of its own, so it comes from the endpoint.
test('blob, HashWX: if WebAssembly cannot be loaded, the script in its place is not the endpoint’s', async () => {
  const { siteKey } = await service.createSite({ puzzle: 'hashwx', difficulty: ALWAYS_EASY })
  evil.fail({ path: builtFile('hashwx.wasm').path, times: 100, answer: { status: 404 } })
  await inState('verified', open(`endpoint="${evil.origin()}" solver="blob"`, { siteKey }))
  assertOnlyFromGateway()
  assert.ok(codeFrom(gateway).some(asked => asked.includes('hashwx-script')))
})

test('a <base> of another origin after the script changes nothing: code comes from where the script came', async () => {
  pages.add('/widget.js', builtFile('widget.js').text)
  const { path, text } = builtFile('page.js')
  pages.add(path, text)
  const scripts = `<script src="/widget.js" defer nonce="abc"></script><base href="${evil.origin()}/">`
  assert.equal(await modeOf(`solver="page" endpoint="${gateway.origin()}"`, scripts, STRICT_DYNAMIC), 'page')
  assert.deepEqual(codeFrom(evil), [])
  assert.equal(codeFrom(pages).length, 1)
})

test('worker-src: only a file of the worker’s own name becomes a worker', async () => {
  const others = words(
    '/evil.js /evil.js?/powgate-worker.js /evil.js#/powgate-worker.js /powgate-worker.js/../evil.js',
    '/not-powgate-worker.js',
  )
  for (const path of others) {
    assert.equal(await modeOf(`worker-src="${path}"`, tag()), 'frame', path)
    assert.ok(!pages.requests.some(asked => asked.endsWith('.js')), path)
  }
  const own = words('/powgate-worker.js?v=2 /captcha/widget/worker.js powgate-worker.0123456789.js')
  for (const path of own) {
    const { pathname } = new URL(path, pages.origin())
    pages.add(pathname, builtFile('worker.js').text)
    assert.equal(await modeOf(`worker-src="${path}"`, tag()), 'worker', path)
  }
})

test('an endpoint on the page’s own origin brings in no worker from there', async () => {
  await openWith('endpoint="/uploads" solver="worker"', tag())
  // The element tries this one last, so after the worker.
  await eventually(60_000, 'the page script', () => codeFrom(gateway).find(asked => asked.includes('/page.')))
  assert.deepEqual(codeFrom(pages), [])
})

test('pinned: works with a nonce alone, and with Trusted Types', async () => {
  const trustedTypes = "; require-trusted-types-for 'script'; trusted-types powgate"
  assert.equal(await modeOf('solver="blob"', pinned), 'blob')
  assert.equal(await modeOf('solver="page"', pinned, NONCE_ONLY), 'page')
  assert.equal(await modeOf('solver="page"', pinned, STRICT_DYNAMIC + trustedTypes), 'page')
})

test('pinned: a worker of another build becomes no blob worker, without a pin it does', async () => {
  alter(gateway, 'worker.js', '0;')
  assert.equal(await modeOf('solver="blob"', tag()), 'blob')
  assert.equal(await modeOf('solver="blob"', pinned), 'page')
})

test('pinned: a page script of another build does not run, also if injected markup has loaded it before', async () => {
  alter(gateway, 'page.js', '0;')
  assert.equal(await modeOf('solver="page"', tag()), 'page')
  assert.equal(await failureOf('solver="page"', pinned), 'assets')
  const preload = `<link rel="modulepreload" href="${gateway.origin()}${builtFile('page.js').path}">`
  assert.equal(await failureOf('solver="page"', preload + pinned), 'assets')
})
