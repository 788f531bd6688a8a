/**
 * Each solver mode (`worker`, `frame`, `blob`, `page`: src/widget/modes.ts) on a page whose policy allows just this mode, without a
 * violation report, and by which solver it solves: `wasm` or `script`. (`open`, `gateway`: harness/widget.ts.)
 */

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser, traceTasks, type Visit } from '../harness/browser.ts'
import { ALWAYS_EASY } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'
import {
  assertQuiet,
  builtFile,
  closePage,
  GATE,
  type OpenOptions,
  press,
  scriptTag,
  startStage,
  strictPages,
  strictPolicy,
  untilState,
  VERIFIED,
  type Verified,
  visit,
  WITH_CLOCK,
} from '../harness/widget.ts'

const { browser, service, site, gateway, pages, open } = await startStage({ POWGATE_DEMO: 'on' })
const hashwxSite = await service.createSite({ puzzle: 'hashwx', difficulty: ALWAYS_EASY })
const slowSite = await service.createSite({ difficulty: { base: 20, min: 20, max: 20 } })

async function verifiedOn(attributes = '', options: OpenOptions = {}) {
  const opened = await open(attributes, options)
  await untilState(opened.page, 'verified') // first, because this wait has an end
  return { ...opened, detail: (await opened.page.evaluate(VERIFIED)) as Verified }
}

const strict = (more: string) => strictPolicy(gateway.origin(), more)

/** Neither the page nor the site's owner hears of anything. */
function assertSilent(notes: Visit): void {
  assertQuiet(notes)
  assert.deepEqual(pages.reports, [])
}

const PUZZLES = { sha256: site, hashwx: hashwxSite }
/** Mode, solver, attributes and policy of each page, and what the policy allows. */
const PAGES = [
  ...strictPages(gateway.origin()).map(
    row => [...row, 'just what it needs, Trusted Types included'] as const,
  ),
  ['worker', 'wasm', 'worker-src="/powgate-worker.js"', strict(''), 'its own scripts, so its own workers'],
  ['frame', 'wasm', '', `script-src 'self' ${gateway.origin()}`, 'all but foreign scripts'],
] as const

for (const [mode, solver, attributes, policy, about] of PAGES)
  for (const [puzzle, { siteKey }] of Object.entries(PUZZLES))
    test(`mode ${mode}, ${puzzle}: on a page that allows ${about}`, async () => {
      const { detail, notes, page } = await verifiedOn(attributes, { policy, siteKey })
      assert.deepEqual([detail.mode, detail.solver], [mode, solver])
      assert.ok(mode === 'page' ? detail.threads === 1 : detail.threads >= 1)
      assertSilent(notes)
      assert.equal(page.frames().length, 1, 'no frame is left')
    })

test('HashWX: a copy of the worker that is older gives way to the frame; a second challenge starts with the right files', async () => {
  pages.add('/old/powgate-worker.js', "postMessage({ kind: 'ready' })") // it does not say `hasHashwx`
  const siteKey = hashwxSite.siteKey
  const { detail, page } = await verifiedOn('worker-src="/old/powgate-worker.js"', { siteKey })
  assert.equal(detail.mode, 'frame')
  gateway.requests.length = 0 // the first challenge loaded files of SHA-256 too, before its puzzle was known
  await page.evaluate(`(${GATE}.reset(), ${GATE}.execute())`)
  await untilState(page, 'verified')
  const isSha256Kernel = (asked: string) => asked.includes('/simd.')
  assert.ok(!gateway.requests.some(isSha256Kernel), `${gateway.requests}`)
})

test('HashWX without WebAssembly, and where a worker may not compile: plain JavaScript', async () => {
  const siteKey = hashwxSite.siteKey
  const policy = strict(`; worker-src blob:`)
  const forbidden = await verifiedOn('solver="blob"', { siteKey, policy })
  assert.deepEqual([forbidden.detail.mode, forbidden.detail.solver], ['blob', 'script'])
  // The flag --jitless, which the test of SHA-256 below uses, would make this take a minute.
  const prepare = (page: Page) => page.addInitScript('delete window.WebAssembly')
  const plain = await verifiedOn('', { visit: { prepare }, siteKey })
  assert.deepEqual([plain.detail.mode, plain.detail.solver], ['frame', 'script'])
})

test('mode worker: on the service’s own origin its worker file is used; the demo tries both puzzles, and tells the time of each', async () => {
  const asked: string[] = []
  const { page, notes } = await visit(browser, `${service.url}/demo`, {
    prepare: async opened => opened.on('request', request => asked.push(new URL(request.url()).pathname)),
  })
  await page.locator('pow-gate').focus()
  await untilState(page, 'verified')
  assert.ok(asked.some(path => path.startsWith('/widget/worker.')))
  const timeOf = (puzzle: string) => page.locator(`[value=${puzzle}] + output`).textContent()
  assert.deepEqual([/^\d+ ms$/.test((await timeOf('sha256'))!), await timeOf('hashwx')], [true, ''])
  await page.check('[value=hashwx]')
  await page.locator('[value=hashwx] + output:not(:empty)').waitFor()
  for (const puzzle of ['sha256', 'hashwx']) assert.match((await timeOf(puzzle))!, /^\d+ ms$/)
  assert.ok(asked.some(path => path.startsWith('/widget/hashwx.')))
  assert.ok(!asked.some(path => /^\/widget\/(frame|hashwx)\..*html$/.test(path)))
  assertSilent(notes) // accessibility.test.ts sends the demo's form
})

test('mode frame: a policy that only reports refuses nothing', async () => {
  const headers = { 'Content-Security-Policy-Report-Only': "frame-src 'none'" }
  assert.equal((await verifiedOn('', { headers })).detail.mode, 'frame')
})

test('an element that leaves the page while its frame loads tries no other mode', async () => {
  const release = gateway.hold(builtFile('frame.html').path)
  const policy = strict(`; frame-src ${gateway.origin()}`)
  const { page, notes } = await open('auto="off"', { policy, visit: WITH_CLOCK })
  await press(page, 'Verify')
  await page.locator('pow-gate iframe').waitFor({ state: 'attached' })
  await page.evaluate(`new Promise(resolve => { ${GATE}.remove(); setTimeout(resolve, 50) })`)
  await page.clock.fastForward(15_000)
  await page.waitForTimeout(300)
  release()
  assertSilent(notes)
})

for (const [mode, attributes, directive] of [
  ['frame', '', `frame-src ${gateway.origin()}`],
  ['worker', 'worker-src="/powgate-worker.js"', "worker-src 'self'"],
] as const)
  test(`a ${mode} that does not load for want of a network is used later, and no reason to try what the policy forbids`, async () => {
    const { page, notes } = await open(`auto="off" ${attributes}`, { policy: strict(`; ${directive}`) })
    await page.context().setOffline(true)
    await press(page, 'Verify')
    await page.waitForTimeout(2000) // the frame is given one second
    await page.context().setOffline(false)
    await untilState(page, 'verified')
    assert.equal(await page.evaluate(`${VERIFIED}.then(({ mode }) => mode)`), mode)
    assert.deepEqual(notes.violations, [])
  })

for (const [puzzle, { siteKey }] of Object.entries(PUZZLES))
  test(`mode frame: in a cross-origin isolated page, ${puzzle}`, async () => {
    const headers = {
      'Cross-Origin-Embedder-Policy': 'require-corp',
      'Cross-Origin-Opener-Policy': 'same-origin',
    }
    const script = `<script src="/listen.js"></script>${scriptTag(gateway, 'crossorigin')}`
    const { page, notes, detail } = await verifiedOn('', { siteKey, script, headers })
    assert.equal(await page.evaluate('crossOriginIsolated'), true)
    assert.equal(detail.mode, 'frame')
    assertSilent(notes)
  })

test('pages without an origin: from a file, and in a sandbox, where frames may start no workers', async () => {
  const script = scriptTag(gateway)
  const sandboxed = await open('', { script, policy: 'sandbox allow-scripts allow-forms' })
  const file = join(temporaryDir('page'), 'form.html')
  writeFileSync(file, await (await fetch(`${pages.origin()}/form`)).text())
  for (const { page, notes } of [sandboxed, await visit(browser, `file://${file}`)]) {
    await untilState(page, 'verified')
    assert.deepEqual(notes.pageErrors, [], page.url())
  }
})

for (const [refusal, more] of [
  ['worker-src', ''],
  ['trusted-types', "; worker-src blob:; require-trusted-types-for 'script'; trusted-types 'none'"],
] as const)
  test(`by itself it finds the page’s own thread where all else is refused (${refusal}), at the price of one report for each mode that is`, async () => {
    const prepare = (page: Page) =>
      page.addInitScript(`unrevoked = new Set()
const { createObjectURL, revokeObjectURL } = URL
URL.createObjectURL = blob => { const url = createObjectURL(blob); unrevoked.add(url); return url }
URL.revokeObjectURL = url => { unrevoked.delete(url); revokeObjectURL(url) }`)
    const { detail, notes, page } = await verifiedOn('', { policy: strict(more), visit: { prepare } })
    assert.equal(detail.mode, 'page')
    assert.deepEqual(notes.pageErrors, [])
    // A second verification tries no refused mode again, so nothing more is reported.
    await page.evaluate(`(${GATE}.reset(), ${GATE}.execute())`)
    const found = notes.violations.map(({ directive }) => directive)
    assert.deepEqual(found, ['frame-src', refusal])
    assert.equal(await page.evaluate('unrevoked.size'), 0, 'addresses of blobs are left')
  })

test('a page on plain http, without crypto.subtle', async () => {
  const { detail, page, notes } = await verifiedOn('', { host: 'plain.example' })
  assert.equal(await page.evaluate('isSecureContext'), false)
  assert.equal(await page.evaluate('crypto.subtle'), undefined)
  assert.equal(detail.solver, 'wasm')
  assertSilent(notes)
})

test('no WebAssembly, no SIMD, no workers: still solved', async () => {
  // V8 has no WebAssembly without its compilers.
  const noWasm = await openBrowser({ flags: ['--js-flags=--jitless'] })
  const plain = await verifiedOn('', { inBrowser: noWasm })
  assert.equal(await plain.page.evaluate('typeof WebAssembly'), 'undefined')
  assert.deepEqual([plain.detail.mode, plain.detail.solver], ['frame', 'script'])

  const off = words('ssse3 sse4-1 sse4-2 avx avx2').map(name => `--no-enable-${name}`)
  const noSimd = await openBrowser({ flags: [`--js-flags=${off.join(' ')}`] })
  const scalar = await verifiedOn('', { inBrowser: noSimd })
  assert.equal(scalar.detail.solver, 'wasm')
  const kernels = gateway.requests.filter(asked => asked.endsWith('.wasm'))
  assert.ok(kernels.length > 0 && kernels.every(asked => asked.includes('scalar.')))

  const prepare = (page: Page) => page.addInitScript('delete window.Worker') // in frames too
  const noWorker = await verifiedOn('', { visit: { prepare } })
  assert.deepEqual([noWorker.detail.mode, noWorker.detail.solver], ['page', 'wasm'])
  assert.deepEqual(noWorker.notes.pageErrors, [])
})

/**
 * The longest task of the page's main thread, from its first script to the token. The best of some attempts counts, because V8
 * compiles in some of them.
 */
async function bestLongestTask(attributes: string, enoughMs: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < 5 && best >= enoughMs; attempt++) {
    const stopTracing = await traceTasks(browser)
    const prepare = (opened: Page) => opened.addInitScript("performance.mark('first script')")
    const options = { siteKey: slowSite.siteKey, visit: { prepare } }
    const { page, detail } = await verifiedOn(attributes, options)
    assert.ok(detail.tries > 0)
    await closePage(page)
    const longestMsSince = await stopTracing()
    best = Math.min(best, longestMsSince('first script'))
  }
  return best
}

test('no time is formatted while no text tells one: the first format blocks the page for 20 ms and more', async () => {
  const count = `window.formats = 0
for (const name of ['NumberFormat', 'RelativeTimeFormat'])
  Intl[name] = new Proxy(Intl[name], { construct: (...all) => (formats++, Reflect.construct(...all)) })`
  const { page } = await verifiedOn('', { visit: { prepare: opened => opened.addInitScript(count) } })
  assert.equal(await page.evaluate('formats'), 0)
})

for (const [attributes, enoughMs] of Object.entries({ '': 50, 'solver="blob"': 50, 'solver="page"': 100 }))
  test(`the page stays responsive at 20 bits: no task of ${enoughMs} ms: ${attributes || 'a frame'}`, async () => {
    assert.ok((await bestLongestTask(attributes, enoughMs)) < enoughMs)
  })
