/** Each solver mode on a page whose policy allows just this mode, without a violation report. */

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, traceTasks, type Visit } from '../harness/browser.ts'
import { temporaryDir } from '../harness/temporary.ts'
import {
  addWidgetPage,
  assertQuiet,
  closePage,
  formPage,
  startStage,
  strictPages,
  strictPolicy,
  untilState,
  VERIFIED,
  type Verified,
  visit,
} from '../harness/widget.ts'

const stage = await startStage({ POWGATE_DEMO: 'on' })
const { browser, service, site, gateway, pages } = stage
const slowSite = await service.createSite({ difficulty: { base: 20, min: 20, max: 20 } })

/** Opens a page with the element and waits for the event of its verification. */
async function verifiedOn(
  policy: string,
  attributes = '',
  options: { browser?: Browser; before?: (page: Page) => Promise<unknown>; host?: string; key?: string } = {},
) {
  const { key = site.siteKey, host } = options
  gateway.clientAddress = nextAddress()
  await addWidgetPage(stage, { key, attributes, policy })
  const opened = await visit(
    options.browser ?? browser,
    `${pages.origin(host)}/form`,
    options.before === undefined ? {} : { prepare: options.before },
  )
  // First, because this wait has an end.
  await untilState(opened.page, 'verified')
  const detail = (await opened.page.evaluate(VERIFIED)) as Verified
  return { ...opened, detail }
}

let lastAddress = 0
const nextAddress = () => `198.51.100.${1 + (lastAddress++ % 250)}`

const strict = (more: string) => strictPolicy(gateway.origin(), more)

/** Neither the page nor the site's owner hears of anything. */
function assertSilent(notes: Visit): void {
  assertQuiet(notes)
  assert.deepEqual(pages.reports, [])
}

for (const [mode, solver, attributes, policy] of strictPages(gateway.origin())) {
  test(`mode ${mode}: on a page that allows just what it needs, Trusted Types included`, async () => {
    const { detail, notes, page } = await verifiedOn(policy, attributes)
    assert.equal(detail.mode, mode)
    assert.equal(detail.solver, solver)
    if (mode === 'page') assert.equal(detail.threads, 1)
    else assert.ok(detail.threads >= 1)
    assertSilent(notes)
    assert.equal(page.frames().length, 1, 'no frame is left')
  })
}

test('mode worker: script-src self is enough', async () => {
  const { detail, notes } = await verifiedOn(strict(''), 'worker-src="/powgate-worker.js"')
  assert.equal(detail.mode, 'worker')
  assertSilent(notes)
})

test('mode worker: on the service’s own origin its worker file is used', async () => {
  const asked: string[] = []
  const { page, notes } = await visit(browser, `${service.url}/demo`, {
    prepare: async opened => opened.on('request', request => asked.push(new URL(request.url()).pathname)),
  })
  await page.locator('pow-gate').focus()
  await untilState(page, 'verified')
  assert.ok(asked.some(path => path.startsWith('/widget/worker.')))
  assert.ok(!asked.some(path => path.startsWith('/widget/frame.')))
  assertSilent(notes)
})

test('mode frame: a page with nothing but script-src', async () => {
  const { detail, notes } = await verifiedOn(`script-src 'self' ${gateway.origin()}`)
  assert.equal(detail.mode, 'frame')
  assertSilent(notes)
})

test('mode frame: in a cross-origin isolated page', async () => {
  const script = `<script src="${gateway.origin()}/widget.js" crossorigin></script>`
  gateway.clientAddress = nextAddress()
  pages.add('/isolated', formPage(`site-key="${site.siteKey}"`, { script }), {
    'Cross-Origin-Embedder-Policy': 'require-corp',
    'Cross-Origin-Opener-Policy': 'same-origin',
  })
  const { page, notes } = await visit(browser, `${pages.origin()}/isolated`)
  await untilState(page, 'verified')
  assert.equal(await page.evaluate('crossOriginIsolated'), true)
  assertSilent(notes)
})

test('pages without an origin: from a file, and in a sandbox, where frames may start no workers', async () => {
  gateway.clientAddress = nextAddress()
  const html = formPage(`site-key="${site.siteKey}"`, {
    script: `<script src="${gateway.origin()}/widget.js"></script>`,
  })
  const file = join(temporaryDir('page'), 'form.html')
  writeFileSync(file, html)
  pages.add('/sandboxed', html, { 'Content-Security-Policy': 'sandbox allow-scripts allow-forms' })
  for (const address of [`file://${file}`, `${pages.origin()}/sandboxed`]) {
    const { page, notes } = await visit(browser, address)
    await untilState(page, 'verified')
    assert.deepEqual(notes.pageErrors, [], address)
  }
})

test('by itself it finds the page’s own thread where all else is refused, at the price of one report an attempt', async () => {
  const { detail, notes, page } = await verifiedOn(strict(''))
  assert.equal(detail.mode, 'page')
  assert.deepEqual(notes.pageErrors, [])
  // And not again when it starts anew.
  await page.evaluate(
    `(() => { const gate = document.querySelector('pow-gate'); gate.reset(); return gate.execute() })()`,
  )
  assert.deepEqual(
    notes.violations.map(({ directive }) => directive),
    ['frame-src', 'worker-src'],
  )
})

test('a page on plain http, without crypto.subtle', async () => {
  const { detail, page, notes } = await verifiedOn('', '', { host: 'plain.example' })
  assert.equal(await page.evaluate('isSecureContext'), false)
  assert.equal(await page.evaluate('crypto.subtle'), undefined)
  assert.equal(detail.solver, 'wasm')
  assertSilent(notes)
})

test('no WebAssembly, no SIMD, no workers: still solved', async () => {
  // Without its compilers V8 has no WebAssembly either.
  const noWasm = await openBrowser({ flags: ['--js-flags=--jitless'] })
  const plain = await verifiedOn('', '', { browser: noWasm })
  assert.equal(await plain.page.evaluate('typeof WebAssembly'), 'undefined')
  assert.equal(plain.detail.solver, 'script')
  assert.equal(plain.detail.mode, 'frame')

  const noSimd = await openBrowser({
    flags: [
      '--js-flags=--no-enable-ssse3 --no-enable-sse4-1 --no-enable-sse4-2 --no-enable-avx --no-enable-avx2',
    ],
  })
  gateway.requests.length = 0
  const scalar = await verifiedOn('', '', { browser: noSimd })
  assert.equal(scalar.detail.solver, 'wasm')
  assert.ok(gateway.requests.some(asked => asked.includes('scalar.')))
  assert.ok(!gateway.requests.some(asked => asked.includes('simd.')))

  const noWorker = await verifiedOn('', '', {
    before: page => page.addInitScript('delete window.Worker'),
  })
  assert.equal(noWorker.detail.mode, 'page')
  assert.equal(noWorker.detail.solver, 'wasm')
  assert.deepEqual(noWorker.notes.pageErrors, [])
})

/** Of the page's main thread, from its first script to the token. The best of some attempts, as V8 compiles in some of them. */
async function bestLongestTask(attributes: string, enoughMs: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 5 && best >= enoughMs; attempt++) {
    const stopTracing = await traceTasks(browser)
    const { page, detail } = await verifiedOn('', attributes, {
      key: slowSite.siteKey,
      before: opened => opened.addInitScript("performance.mark('first script')"),
    })
    assert.ok(detail.tries > 0)
    await closePage(page)
    const longestMsSince = await stopTracing()
    best = Math.min(best, longestMsSince('first script'))
  }
  return best
}

test('the page stays responsive at 20 bits: no task of 50 ms with workers', async () => {
  assert.ok((await bestLongestTask('', 50)) < 50)
  assert.ok((await bestLongestTask('solver="blob"', 50)) < 50)
})

test('the page stays responsive at 20 bits: no task of 100 ms on the page’s own thread', async () => {
  assert.ok((await bestLongestTask('solver="page"', 100)) < 100)
})
