/** What goes wrong on the way: the element waits, mends what it can, and says plainly what it cannot. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Fault } from '../harness/browser-proxy.ts'
import { freePort } from '../harness/ports.ts'
import { closePage, formPage, untilState, visit } from '../harness/widget-pages.ts'
import { startStage } from '../harness/widget-stage.ts'

const CHALLENGE_SECONDS = 10

const { browser, service, site, gateway, pages } = await startStage({
  POWGATE_CHALLENGE_SECONDS: String(CHALLENGE_SECONDS),
})

let lastAddress = 0

/** A page whose element has not started yet, if `auto="off"` is among its attributes. */
async function open(attributes = '', faults: readonly Fault[] = []) {
  gateway.clientAddress = `198.51.100.${++lastAddress}`
  gateway.requests.length = 0
  for (const fault of faults) gateway.fail(fault)
  const siteKey = attributes.includes('site-key') ? '' : `site-key="${site.siteKey}"`
  const script = `<script src="${gateway.origin()}/widget.js"></script>`
  pages.add('/form', formPage(`${siteKey} ${attributes}`, { script }))
  return visit(browser, `${pages.origin()}/form`)
}

const text = (page: Page) => page.locator('pow-gate .text').textContent()
const detail = (page: Page) => page.locator('pow-gate .detail').textContent()
const errorCode = (page: Page) => page.evaluate(`document.querySelector('pow-gate').error?.code`)

const limited = (seconds: number) => ({
  status: 429,
  headers: { 'Retry-After': String(seconds) },
  body: { error: 'Too many requests.', code: 'rate-limited' },
})

test('429: waits as long as Retry-After says, with a count-down, then goes on', async () => {
  const { page, notes } = await open('', [{ path: '/challenge', times: 1, answer: limited(3) }])
  await page.locator('pow-gate .text:has-text("Busy")').waitFor()
  assert.match((await detail(page))!, /^Goes on in [1-4] s$/)
  await untilState(page, 'verified')
  const [first, second, ...more] = gateway.timesOf('GET /challenge')
  assert.ok(second! - first! > 2900, `asked again after ${second! - first!} ms`)
  assert.deepEqual(more, [])
  assert.deepEqual(notes.pageErrors, [])
  await closePage(page)
})

test('the real limit: 31 challenges in a minute are too many, and its Retry-After is what the element waits for', async () => {
  const { page } = await open('auto="off"')
  for (let count = 0; count < 30; count++) {
    const headers = { 'X-Site-Key': site.siteKey, 'X-Forwarded-For': gateway.clientAddress }
    assert.equal((await fetch(`${service.url}/challenge`, { headers })).status, 200)
  }
  await page.getByRole('button', { name: 'Verify' }).click()
  await page.locator('pow-gate .text:has-text("Busy")').waitFor()
  const seconds = Number(/(\d+) s$/.exec((await detail(page))!)![1])
  assert.ok(seconds > 50 && seconds <= 62, String(seconds))
  await closePage(page)
})

test('a wait of hours is not waited for: it fails, and the button tries again', async () => {
  const { page } = await open('', [{ path: '/challenge', times: 1, answer: limited(7200) }])
  await untilState(page, 'failed')
  assert.equal(await errorCode(page), 'rate-limited')
  await page.getByRole('button', { name: 'Try again' }).click()
  await untilState(page, 'verified')
  await closePage(page)
})

test('429 of /verify: the same solution is sent again', async () => {
  const { page } = await open('', [{ path: '/verify', times: 1, answer: limited(1) }])
  await untilState(page, 'verified')
  assert.equal(gateway.count('GET /challenge'), 1)
  assert.equal(gateway.count('POST /verify'), 2)
  await closePage(page)
})

test('403 IP mismatch, as when a phone changes networks: a fresh challenge', async () => {
  const { page, notes } = await open('', [{ path: '/verify', times: 1, clientAddress: '203.0.113.9' }])
  await untilState(page, 'verified')
  assert.equal(gateway.count('GET /challenge'), 2)
  assert.equal(gateway.count('POST /verify'), 2)
  assert.deepEqual(notes.pageErrors, [])
  await closePage(page)
})

test('400 expired: a fresh challenge', async () => {
  const delayMs = CHALLENGE_SECONDS * 1000 + 500
  const { page } = await open('', [{ path: '/verify', times: 1, delayMs }])
  await untilState(page, 'verified', 'pow-gate', delayMs + 10_000)
  assert.equal(gateway.count('GET /challenge'), 2)
  await closePage(page)
})

test('an answer that is lost on its way back: the nonce is used, so a fresh challenge', async () => {
  const { page } = await open('', [{ path: '/verify', times: 1, isAnswerLost: true }])
  await untilState(page, 'verified')
  assert.equal(gateway.count('POST /verify'), 3)
  assert.equal(gateway.count('GET /challenge'), 2)
  await closePage(page)
})

test('503 twice: waits, says so, and goes on', async () => {
  const answer = {
    status: 503,
    headers: { 'Retry-After': '1' },
    body: { error: 'Away.', code: 'unavailable' },
  }
  const { page } = await open('', [{ path: '/challenge', times: 2, answer }])
  await page.locator('pow-gate .text:has-text("service is busy")').waitFor()
  await untilState(page, 'verified')
  assert.equal(gateway.count('GET /challenge'), 3)
  await closePage(page)
})

test('503 for good: fails, tells the integrator why, and offers to try again', async () => {
  const answer = {
    status: 503,
    headers: { 'Retry-After': '1' },
    body: { error: 'Away.', code: 'unavailable' },
  }
  const fault = { path: '/challenge', times: 1000, answer }
  const { page, notes } = await open('', [fault])
  await untilState(page, 'failed', 'pow-gate', 30_000)
  assert.equal(await errorCode(page), 'unavailable')
  assert.match((await text(page))!, /service is busy/)
  assert.ok(notes.consoleErrors.some(line => line.includes('pow-gate: Away.')))
  gateway.recover()
  await page.getByRole('button', { name: 'Try again' }).click()
  await untilState(page, 'verified')
  assert.equal(await errorCode(page), undefined)
  await closePage(page)
})

test('offline: waits for the network, and goes on when it is back', async () => {
  const { page } = await open('auto="off"')
  await page.context().setOffline(true)
  await page.getByRole('button', { name: 'Verify' }).click()
  await page.locator('pow-gate .text:has-text("Offline")').waitFor()
  await page.waitForTimeout(1500)
  assert.equal(await page.evaluate(`document.querySelector('pow-gate').state`), 'working')
  await page.context().setOffline(false)
  await untilState(page, 'verified')
  await closePage(page)
})

test('a connection that is cut twice is tried again', async () => {
  const { page } = await open('', [{ path: '/challenge', times: 2, isDropped: true }])
  await untilState(page, 'verified')
  assert.equal(gateway.count('GET /challenge'), 3)
  await closePage(page)
})

test('a result that does not pass: failed, not retried by itself, and no reason given', async () => {
  const answer = { status: 200, body: { token: null, passed: false, expiresAt: null } }
  const { page, notes } = await open('', [{ path: '/verify', times: 1, answer }])
  await untilState(page, 'failed')
  assert.equal(await text(page), 'Verification failed')
  assert.equal(await detail(page), '')
  assert.deepEqual(notes.consoleErrors, [])
  assert.equal(await page.evaluate('document.forms[0].checkValidity()'), false)
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 1)
  await page.getByRole('button', { name: 'Try again' }).click()
  await untilState(page, 'verified')
  await closePage(page)
})

const MISTAKES: readonly [about: string, attributes: string, code: string, told: RegExp][] = [
  ['no site-key', 'site-key=""', 'site-key-missing', /attribute site-key is missing/],
  ['a malformed site-key', 'site-key="site_short"', 'site-key-malformed', /site_ and 22 letters/],
  ['an unknown site-key', 'site-key="site_0000000000000000000000"', 'site-unknown', /not known/],
  ['a malformed endpoint', 'endpoint="http://"', 'endpoint-malformed', /http or https/],
  ['an endpoint of another kind', 'endpoint="ftp://127.0.0.1/"', 'endpoint-malformed', /http or https/],
  ['a mode that does not exist', 'solver="gpu"', 'solver-unknown', /worker, frame, blob, page/],
]

for (const [about, attributes, code, told] of MISTAKES) {
  test(`a mistake of the page is shown in the element and told on the console: ${about}`, async () => {
    const { page, notes } = await open(attributes)
    await untilState(page, 'failed')
    assert.equal(await errorCode(page), code)
    assert.match((await text(page))!, /not set up correctly/)
    assert.equal(await detail(page), code)
    assert.ok(
      notes.consoleErrors.some(line => told.test(line)),
      notes.consoleErrors.join('\n'),
    )
    assert.deepEqual(notes.pageErrors, [])
    // The page goes on working, and execute() tells it too.
    const rejected = await page.evaluate(
      `document.querySelector('pow-gate').execute().catch(error => error.code)`,
    )
    assert.equal(rejected, code)
    await closePage(page)
  })
}

test('an endpoint where something else answers', async () => {
  pages.add('/other/challenge', '<h1>A shop</h1>')
  const { page, notes } = await open('endpoint="/other"')
  await untilState(page, 'failed')
  assert.equal(await errorCode(page), 'unexpected-answer')
  assert.deepEqual(notes.pageErrors, [])
  await closePage(page)
})

test('an endpoint that cannot be reached: tried for a while, then said', async () => {
  const { page, notes } = await open(`endpoint="http://127.0.0.1:${await freePort()}"`)
  await page.locator('pow-gate .text:has-text("cannot be reached")').waitFor()
  await untilState(page, 'failed', 'pow-gate', 30_000)
  assert.equal(await errorCode(page), 'network')
  assert.ok(notes.consoleErrors.some(line => line.includes('pow-gate: http://127.0.0.1')))
  assert.deepEqual(notes.pageErrors, [])
  await page.click('text=Send')
  await closePage(page)
})

test('an event handler of the page that throws harms nothing', async () => {
  const { page } = await open('auto="off"')
  await page.evaluate(
    `document.querySelector('pow-gate').addEventListener('statechange', () => { throw new Error('mine') })`,
  )
  await page.getByRole('button', { name: 'Verify' }).click()
  await untilState(page, 'verified')
  await closePage(page)
})
