/**
 * The visitor's GPU beside the threads, in Chromium with WebGPU in software (SwiftShader). This GPU is slower than a thread, so
 * nothing is said of speed. Where it has to win, JavaScript has no compiler, and the challenge is one that the GPU solves soon.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { checkProof } from '../../src/domain/pow.ts'
import { FIRST_COUNTER, GPU_START } from '../../src/protocol/proof.ts'
import { COUNTERS_PER_GROUP } from '../../src/widget/solver/shader.ts'
import { openBrowser, startRenderer, traceTasks, WEBGPU_IN_SOFTWARE } from '../harness/browser.ts'
import { Client, SOLVERS } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { UNLIMITED } from '../harness/service.ts'
import {
  alter,
  assertQuiet,
  builtFile,
  closePage,
  endless,
  GATE,
  inState,
  type OpenOptions,
  pinnedTag,
  startStage,
  strictPages,
  untilState,
  VERIFIED,
  type Verified,
  visit,
} from '../harness/widget.ts'

const { service, gateway, pages, ...stage } = await startStage(UNLIMITED)
/** It has threads and a GPU. */
const both = await openBrowser({ isWhole: true, flags: WEBGPU_IN_SOFTWARE })
/** Its JavaScript has no compiler, so its threads are a hundred times slower. */
const slowThreads = [...WEBGPU_IN_SOFTWARE, '--js-flags=--jitless']
const gpuFirst = await openBrowser({ isWhole: true, flags: slowThreads })
for (const browser of [both, gpuFirst]) await startRenderer(browser)

const siteOf = (bits: number) => service.createSite({ difficulty: { base: bits, min: bits, max: bits } })
/** The GPU is for 20 bits and more. */
const [site19, site20, site22] = [await siteOf(19), await siteOf(20), await siteOf(22)]
const site24 = await siteOf(24) // so hard that the GPU mostly joins before a thread has solved it

const GPU_FILE = builtFile('gpu.js').path
const gpuFiles = () => gateway.requests.filter(asked => asked.includes(GPU_FILE)).length

const ADDRESS = '198.51.100.1'
const solver = SOLVERS.sha256

/** Gives the next page a suitable challenge of the site. `find(start, count)` returns the first of these counters that solves it, or -1. */
async function giveSuitable(siteKey: string, isSuitable: (find: ReturnType<typeof solver>) => boolean) {
  gateway.clientAddress = ADDRESS
  const client = new Client(gateway.origin())
  for (let tries = 0; tries < 2000; tries++) {
    const { json } = await client.challenge(siteKey)
    if (!isSuitable(solver(json.nonce, json.difficulty))) continue
    return gateway.fail({ path: '/challenge', answer: { status: 200, body: json } })
  }
  assert.fail('no challenge is suitable')
}

/** 20 bits, whose first counter the GPU finds within some dispatches, and a thread without a compiler much later. */
const favourGpu = () =>
  giveSuitable(site20.siteKey, find => find(GPU_START, 50_000) >= 0 && find(FIRST_COUNTER, 1_000_000) < 0)

/** Runs in the page before the widget: counts what is asked of WebGPU, and lets a test break it. */
const WATCH = `{
  window.asked = { adapters: 0, devices: 0, dispatches: 0 }
  window.watch = (type, name, around) => {
    const real = type.prototype[name]
    type.prototype[name] = function (...given) { return around(() => real.apply(this, given), this) }
  }
  watch(GPU, 'requestAdapter', real => {
    if (asked.adapters++ === 0) performance.mark('gpu asked')
    return real()
  })
  watch(GPUAdapter, 'requestDevice', async real => { asked.devices++; return window.device = await real() })
  watch(GPUQueue, 'submit', real => { asked.dispatches++; real() })
}`
type Asked = Record<'adapters' | 'devices' | 'dispatches', number>
const askedOf = (page: Page) => page.evaluate('window.asked') as Promise<Asked>

/** Opens a page that is watched, with threads and GPU. @param script runs after WATCH */
function open(attributes: string, options: OpenOptions = {}, script = '') {
  const prepare = (page: Page) => page.addInitScript(WATCH + script)
  const watched = { inBrowser: both, siteKey: site22.siteKey, from: ADDRESS, visit: { prepare } }
  return stage.open(attributes, { ...watched, ...options })
}

async function verifiedOn(...given: Parameters<typeof open>) {
  const { page, notes } = await inState('verified', open(...given))
  return { page, notes, detail: (await page.evaluate(VERIFIED)) as Verified }
}

/** A challenge that no thread solves, so that the GPU has time to start. */
const ENDLESS = { fault: { path: '/challenge', answer: endless() } }
/** Where the GPU has to win. */
const GPU_WINS = { inBrowser: gpuFirst, siteKey: site20.siteKey }
/** `threads` alone would switch the GPU off; `gpu` switches it on again, also one in software. */
const ALLOWED = 'threads="1" gpu="software"'

type Search = { readonly nonce: string; readonly difficulty: number; readonly start?: number }

function searchAlone(page: Page, searches: readonly Search[]): Promise<number[]> {
  return page.evaluate(
    async ([url, list]) => {
      const { search } = await import(url)
      const found: number[] = []
      for (const { nonce, difficulty, start } of list)
        found.push(await search({ nonce, difficulty }, 'software', () => true, start))
      return found
    },
    [`${gateway.origin()}${GPU_FILE}`, searches] as const,
  )
}

async function blankPage() {
  pages.add('/blank', '<!doctype html><title>Blank</title>')
  return (await visit(both, `${pages.origin()}/blank`)).page
}

// Python made them (vectors/proof.json). The GPU hashes counters of sixteen digits alone, as widgets try them.
test('the GPU alone finds the golden counters of all solvers, with every difficulty from 16 to 24', async () => {
  const { sixteenDigits } = JSON.parse(
    readFileSync(new URL('../vectors/proof.json', import.meta.url), 'utf8'),
  ) as { sixteenDigits: { nonce: string; start: number; counter: number; zeroBits: number }[] }
  const searches = sixteenDigits.map(({ nonce, start, zeroBits }) => {
    return { nonce, difficulty: zeroBits, start: start - (start % COUNTERS_PER_GROUP) }
  })
  for (let bits = 16; bits <= 24; bits++) assert.ok(searches.some(({ difficulty }) => difficulty === bits))
  const found = await searchAlone(await blankPage(), searches)
  const expected = sixteenDigits.map(({ counter }) => counter)
  assert.deepEqual(found, expected)
})

test('the GPU alone goes on where the first eight digits change', async () => {
  const nonce = '7'.repeat(32)
  const start = GPU_START + 1e8 - COUNTERS_PER_GROUP // they change with the next group
  const [found] = await searchAlone(await blankPage(), [{ nonce, difficulty: 17, start }])
  let expected = start
  while (!checkProof(nonce, expected, 17)) expected++
  assert.ok(expected > start + COUNTERS_PER_GROUP)
  assert.equal(found, expected)
})

for (const [mode, , attributes, policy] of strictPages(gateway.origin())) {
  test(`mode ${mode}: the GPU joins and wins, on a page that allows just what the mode needs`, async () => {
    await favourGpu()
    const { detail, notes, page } = await verifiedOn(`${attributes} ${ALLOWED}`, { ...GPU_WINS, policy })
    assert.deepEqual([detail.mode, detail.solver], [mode, 'gpu'])
    assert.ok(detail.tries > 0 && detail.threads === 1)
    const { json } = await new Client(service.url).verifyToken(site20.apiKey, { token: detail.token })
    assert.deepEqual([json.success, json.score], [true, 1])
    assertQuiet(notes)
    assert.deepEqual(pages.reports, [])
    assert.equal((await askedOf(page)).devices, 1)
    const { dispatches } = await askedOf(page)
    await page.waitForTimeout(200)
    assert.equal((await askedOf(page)).dispatches, dispatches, 'the GPU stops with the answer')
  })
}

test('the page stays responsive with a GPU at 24 bits: no task takes 50 ms of its thread', async () => {
  for (let tries = 0; tries < 40; tries++) {
    const stopTracing = await traceTasks(both)
    const { page } = await verifiedOn(ALLOWED, { siteKey: site24.siteKey })
    const { dispatches } = await askedOf(page)
    await closePage(page)
    const longestMsSince = await stopTracing()
    if (dispatches === 0) continue // a thread was quicker, perhaps before the mark
    const longestMs = longestMsSince('gpu asked')
    return assert.ok(longestMs < 50, `${longestMs} ms`)
  }
  assert.fail('the GPU was asked for nothing')
})

test('the GPU pauses while the page is hidden, where its device is closed 10 s after the search', async () => {
  const { page } = await open(ALLOWED, ENDLESS)
  await eventually(60_000, 'dispatches', async () => (await askedOf(page)).dispatches > 3)
  const show = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(Document.prototype, 'hidden', { configurable: true, value: ${isHidden} })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await show(true)
  await page.waitForTimeout(200)
  const { dispatches } = await askedOf(page)
  await page.waitForTimeout(300)
  assert.equal((await askedOf(page)).dispatches, dispatches)
  await show(false)
  await eventually(60_000, 'more dispatches', async () => (await askedOf(page)).dispatches > dispatches)
  await show(true)
  await page.evaluate('window.lost = false; void device.lost.then(() => { lost = true })') // nobody waits for it here
  await page.evaluate(`${GATE}.gpu = 'off'`) // a change of this kind ends the search
  await eventually(60_000, 'the device is closed', async () => await page.evaluate('lost'))
})

const BROKEN: Readonly<Record<string, string>> = {
  'there is no adapter': `watch(GPU, 'requestAdapter', async () => null)`,
  'the driver takes long to start': `watch(GPU, 'requestAdapter', () => new Promise(() => {}))`,
  'the device is lost at once': `watch(GPUAdapter, 'requestDevice', async real => {
    const device = await real(); device.destroy(); return device })`,
  'the device is lost during a search': `watch(GPUQueue, 'submit', real => {
    real(); if (asked.dispatches === 3) device.destroy() })`,
  'the GPU finds wrong counters': `watch(GPUBuffer, 'getMappedRange', () => new Uint32Array([5]).buffer)`,
}

for (const [what, script] of Object.entries(BROKEN)) {
  test(`the threads go on alone if ${what}`, async () => {
    await giveSuitable(site22.siteKey, find => find(GPU_START, 200_000) < 0) // not in the GPU's first dispatches
    const { page, notes, detail } = await verifiedOn(ALLOWED, {}, script)
    assert.equal(detail.solver, 'wasm')
    assert.deepEqual([notes.pageErrors, notes.violations], [[], []])
    await closePage(page)
  })
}

test('the file is fetched only for hard challenges, and not if the page limits the GPU or the threads', async () => {
  const { siteKey } = site22
  for (const { attributes, mayFetch = false, options = {} } of [
    { attributes: 'solver="page" gpu="software"', options: { siteKey: site19.siteKey } },
    { attributes: 'gpu="off"' },
    { attributes: 'gpu="false"' },
    { attributes: 'threads="1"' },
    { attributes: 'threads="1" gpu="on"', mayFetch: true }, // but `on` takes no adapter in software
  ]) {
    const { page, detail } = await verifiedOn(attributes, { siteKey, ...options })
    if (!mayFetch) assert.equal(gpuFiles(), 0, attributes)
    assert.notEqual(detail.solver, 'gpu', attributes)
    assert.equal((await askedOf(page)).devices, 0, attributes)
    await closePage(page)
  }
  await open(ALLOWED, ENDLESS)
  await eventually(60_000, 'the file is fetched', () => gpuFiles() === 1)
})

test('pinned: works, and a file of another build does not run', async () => {
  const script = pinnedTag(gateway) // it pins the GPU's file too: the browser fetches another one, and refuses to run it
  /** With a challenge of the service, after the one that is endless. */
  const verifyAnew = async (page: Page) => {
    await page.evaluate(`${GATE}.reset()`)
    await untilState(page, 'verified')
  }
  const { page: first } = await open(ALLOWED, { script, ...ENDLESS })
  await eventually(60_000, 'a device', async () => (await askedOf(first)).devices === 1)
  await verifyAnew(first)
  await closePage(first)
  alter(gateway, 'gpu.js', 'window.isForeign = true;')
  const { page } = await open(ALLOWED, { script, ...ENDLESS })
  await eventually(60_000, 'the foreign file is fetched', () => gpuFiles() > 0)
  await verifyAnew(page)
  assert.equal(await page.evaluate('window.isForeign'), undefined)
})
