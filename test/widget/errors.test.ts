/**
 * Failures between widget and service: the element waits, retries, and shows an error where a retry cannot help. `open`
 * (harness/widget.ts) opens a page with an element, and with it the counts of `gateway` begin anew; a fault meets one request unless
 * `times` says more, and ends with the test.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { OUTCOMES } from '../../src/domain/outcome.ts'
import type { Fault } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/ports.ts'
import {
  endless,
  errorCode,
  GATE,
  inState,
  press,
  startStage,
  untilState,
  VERIFIED,
  verify,
  WITH_CLOCK,
} from '../harness/widget.ts'
import { away, limited, NOT_PASSED } from './answers.ts'

const { site, gateway, open } = await startStage()
const CLOCK = { visit: WITH_CLOCK }

/** Lets the page's clock pass each wait that the element tells, until it has failed. */
async function untilFailed(page: Page): Promise<void> {
  const waits = page.locator('pow-gate .detail:text-matches("Continues")')
  const failed = page.locator('pow-gate:state(failed)')
  for (;;) {
    await waits.or(failed).first().waitFor({ state: 'attached' })
    if ((await failed.count()) > 0) return
    const before = gateway.requests.length
    await page.clock.fastForward(8500) // the longest wait: before the fifth and last try, with its jitter
    // The old wait is still shown during the next try, and another step of the clock could end that try as too late.
    const isNext = async () => gateway.requests.length > before || (await failed.count()) > 0
    await eventually(60_000, 'the next try', isNext)
  }
}

const text = (page: Page) => page.locator('pow-gate .text').textContent()
async function assertTold(page: Page, code: string, shown: RegExp): Promise<void> {
  assert.equal(await errorCode(page), code)
  assert.match((await text(page))!, shown)
}
const detail = (page: Page) => page.locator('pow-gate .detail').textContent()
async function tryAgain(page: Page): Promise<void> {
  await press(page, 'Try again')
  await untilState(page, 'verified')
}

const { status, code, message } = OUTCOMES['nonce-expired']
const EXPIRED = { status, body: { error: message, code } }

/** Mended without a word: the fault, and how many challenges and verifications the element asks for. */
const MENDED: readonly [about: string, fault: Fault, challenges: number, verifications: number][] = [
  ['429 of /verify: the same solution again', { path: '/verify', answer: limited(1) }, 1, 2],
  ['another network: a fresh challenge', { path: '/verify', clientAddress: '203.0.113.9' }, 2, 2],
  ['expired: a fresh challenge', { path: '/verify', answer: EXPIRED }, 2, 2],
  ['a lost answer: the nonce is used, so a fresh challenge', { path: '/verify', isAnswerLost: true }, 2, 3],
  ['a connection that is cut twice', { path: '/challenge', times: 2, isDropped: true }, 3, 1],
  ['503 twice', { path: '/challenge', times: 2, answer: away(1) }, 3, 1],
]

for (const [about, fault, challenges, verifications] of MENDED) {
  test(`tried again: ${about}`, async () => {
    const { notes } = await inState('verified', open('', { fault }))
    assert.equal(gateway.count('GET /challenge'), challenges)
    assert.equal(gateway.count('POST /verify'), verifications)
    assert.deepEqual(notes.pageErrors, [])
  })
}

test('429: waits as long as Retry-After says, with a count-down, then goes on', async () => {
  const release = gateway.hold('/challenge', limited(3))
  const { page, notes } = await open()
  const releasedMs = performance.now()
  release()
  const told = { hasText: /Too many requests\s*Continues in\s[1-4]\sseconds?/ } // both at once: they stand there for 3 s
  await page.getByRole('status').filter(told).waitFor()
  await untilState(page, 'verified')
  const [, second, ...more] = gateway.timesOf('GET /challenge')
  assert.ok(second! - releasedMs > 2900, `asked again after ${second! - releasedMs} ms`)
  assert.deepEqual(more, [])
  assert.deepEqual(notes.pageErrors, [])
})

/** A network that wants a login first answers so, and so do a web application firewall and a shop. */
const FOREIGN = [200, 403, 404].map(status => ({ status, body: '<h1>Welcome</h1>' }))

test('an answer that is no JSON comes from something in between: tried again, then said so', async () => {
  for (const answer of FOREIGN) {
    gateway.fail({ path: '/challenge', answer })
    const release = gateway.hold('/challenge') // the next one
    const { page, notes } = await open()
    await page.locator('pow-gate .text:has-text("cannot be reached")').waitFor()
    release()
    await untilState(page, 'verified')
    assert.deepEqual(notes.pageErrors, [])
  }
  for (const isSent of [true, false]) {
    const fault = { path: '/challenge', times: 5, answer: FOREIGN[0]! }
    const { page } = await open('', { fault, ...CLOCK })
    if (isSent) await page.click('text=Send')
    await untilFailed(page)
    await assertTold(page, 'unexpected-answer', /cannot be reached/)
    // The visitor comes back from the network's login.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    if (isSent) assert.equal(await page.locator('pow-gate button').textContent(), 'Try again')
    else await untilState(page, 'verified')
  }
})

const setOnline = (page: Page, isOnline: boolean) =>
  page.evaluate(`Object.defineProperty(navigator, 'onLine', { value: ${isOnline}, configurable: true })
    dispatchEvent(new Event('${isOnline ? 'online' : 'offline'}'))`)

for (const status of [200, 503])
  test(`offline, where a service worker of the page answers ${status} in the service’s place: waits for the network`, async () => {
    const answer = { status, body: '<h1>Offline</h1>' }
    const { page } = await open('auto="off"', { fault: { path: '/challenge', times: 100, answer } })
    await setOnline(page, false)
    await press(page, 'Verify')
    await eventually(60_000, 'six attempts', async () => {
      await page.evaluate("dispatchEvent(new Event('online'))")
      return gateway.count('GET /challenge') >= 6 // with a network the widget tries five times
    })
    gateway.recover()
    await setOnline(page, true)
    await untilState(page, 'verified')
  })

/** Part of a fault: all requests for files that the solver loads. */
const ASSETS = { path: /frame|worker|page|wasm/, times: 100 }

test('assets that hang: said after 20 seconds', async () => {
  const fault = { ...ASSETS, until: new Promise<void>(() => {}) }
  const { page } = await open('', { fault, ...CLOCK })
  await eventually(60_000, 'a challenge', () => gateway.count('GET /challenge') === 1)
  // The 20 seconds (flow.ts) begin when the challenge has been read, and what goes on in them takes real time too: hence 24, in steps.
  for (let seconds = 0; seconds < 24; seconds += 4) {
    await page.clock.runFor(4000)
    await page.waitForTimeout(100)
  }
  await untilState(page, 'failed')
  await assertTold(page, 'assets', /cannot be reached/)
})

test('assets that load while the phone sleeps: it goes on when it wakes', async () => {
  let come = () => {}
  const fault = { ...ASSETS, until: new Promise<void>(resolve => (come = resolve)) }
  const { page } = await open('', { fault, ...CLOCK })
  await eventually(60_000, 'a challenge', () => gateway.count('GET /challenge') === 1)
  await page.clock.fastForward(30_000) // as a sleep does: each timer that is due fires once, so one second of the 20 counts
  come()
  await untilState(page, 'verified')
})

test('assets that are blocked: tried five times, then said, and the console names the file', async () => {
  const { page, notes } = await open('', { fault: { ...ASSETS, answer: { status: 403 } }, ...CLOCK })
  await untilFailed(page)
  await assertTold(page, 'assets', /cannot be reached/)
  const told = notes.consoleErrors.join('\n')
  assert.match(told, /pow-gate: the solver does not load: \S+ http\S+\/widget\/page\./)
})

for (const solver of ['frame', 'blob', 'page'])
  test(`assets that are refused for some seconds, as in a deploy: it waits for them, and goes on: ${solver}`, async () => {
    const fault = { ...ASSETS, answer: { status: 502 } }
    const { page, notes } = await open(`solver="${solver}"`, { fault })
    await page.locator('pow-gate:state(working) .text:has-text("cannot be reached")').waitFor()
    assert.match((await detail(page))!, /^Continues in\s\d\sseconds?$/)
    gateway.recover()
    await untilState(page, 'verified')
    assert.equal(await page.evaluate(`${VERIFIED}.then(({ mode }) => mode)`), solver)
    assert.equal(gateway.count('GET /challenge'), 1)
    assert.deepEqual(notes.pageErrors, [])
  })

test('a kernel that is refused once is loaded again: without it the solver would be several times slower', async () => {
  await inState('verified', open('', { fault: { path: /wasm/, answer: { status: 502 } } }))
  assert.equal(gateway.requests.filter(request => request.includes('.wasm')).length, 2)
})

test('assets that do not load because the network went away: it waits for the network, and goes on', async () => {
  let lose = () => {}
  const until = new Promise<void>(resolve => (lose = resolve))
  const { page } = await open('auto="off"', { fault: { ...ASSETS, until, answer: { status: 403 } } })
  await Promise.all([page.waitForResponse(/challenge/), press(page, 'Verify')])
  // First the widget must have read the challenge: JSON that comes while it is offline would mean a network (isOnlineAnyway).
  await page.evaluate('new Promise(resolve => setTimeout(resolve, 200))')
  await setOnline(page, false)
  lose()
  await page.locator('pow-gate .text:has-text("No internet")').waitFor()
  gateway.recover()
  await setOnline(page, true)
  await untilState(page, 'verified')
})

test('a browser that takes its device for offline, and is not: a frame that is blocked gives way to the next mode', async () => {
  const script = "Object.defineProperty(Navigator.prototype, 'onLine', { value: false })"
  const prepare = async (page: Page) => {
    await page.addInitScript(script)
    await page.route(/frame\.\w+\.html/, route => route.abort('blockedbyclient'))
  }
  const { page } = await inState('verified', open('', { visit: { prepare } }))
  assert.equal(await page.evaluate(`${VERIFIED}.then(({ mode }) => mode)`), 'blob')
})

test('a wait of hours is not waited for: it fails, and the button tries again and tells when', async () => {
  const { page } = await inState('failed', open('', { fault: { path: '/challenge', answer: limited(7200) } }))
  assert.equal(await errorCode(page), 'rate-limited')
  assert.equal(await page.locator('pow-gate button').textContent(), 'Try again\nin\u00a02\u00a0hours')
  await tryAgain(page)
})

test('offline: waits for the network, which may come and go more than five times, and goes on when it is back', async () => {
  const { page } = await open('auto="off"')
  let lost = 0
  page.on('requestfailed', () => lost++)
  await page.context().setOffline(true)
  await press(page, 'Verify')
  await page.locator('pow-gate .text:has-text("No internet")').waitFor()
  await eventually(60_000, 'six attempts', async () => {
    await page.evaluate("dispatchEvent(new Event('online'))")
    return lost >= 6
  })
  assert.equal(await page.evaluate(`${GATE}.state`), 'working')
  await page.context().setOffline(false)
  await untilState(page, 'verified')
})

test('a result that does not pass: failed, not retried by itself, and no reason given', async () => {
  const fault = { path: '/verify', answer: NOT_PASSED }
  const { page, notes } = await inState('failed', open('', { fault }))
  assert.equal(await text(page), 'Verification failed')
  assert.equal(await detail(page), '')
  assert.deepEqual(notes.consoleErrors, [])
  assert.equal(await page.evaluate('document.forms[0].checkValidity()'), false)
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 1)
  await tryAgain(page)
})

const KEY = site.siteKey
const MISTAKES: readonly [about: string, key: string, attributes: string, code: string, told: RegExp][] = [
  ['no site-key', '', '', 'site-key-missing', /attribute site-key is missing/],
  ['a malformed site-key', 'site_short', '', 'site-key-malformed', /site_ and 22 letters/],
  ['an unknown site-key', 'site_0000000000000000000000', '', 'site-unknown', /not known/],
  ['a malformed endpoint', KEY, 'endpoint="http://"', 'endpoint-malformed', /http or https/],
  ['an endpoint of FTP', KEY, 'endpoint="ftp://127.0.0.1/"', 'endpoint-malformed', /http or https/],
  ['a mode that does not exist', KEY, 'solver="gpu"', 'solver-unknown', /worker, frame, blob, page/],
]

for (const [about, siteKey, attributes, code, told] of MISTAKES) {
  test(`a mistake of the page is shown in the element and told on the console: ${about}`, async () => {
    const { page, notes } = await inState('failed', open(attributes, { siteKey }))
    await assertTold(page, code, /Not set up correctly/)
    assert.equal(await detail(page), `Please tell the site’s owner:\n${code}`)
    assert.equal(await page.locator('pow-gate button').isVisible(), false)
    assert.match(notes.consoleErrors.join('\n'), told)
    assert.deepEqual(notes.pageErrors, [])
    // The page goes on working, and execute() tells it too.
    const rejected = await page.evaluate(`${GATE}.execute().catch(error => error.code)`)
    assert.equal(rejected, code)
  })
}

/** The date of a proxy, which tells a wait by a clock that the visitor's may not agree with. */
const IN_FIVE_HOURS = { 'Retry-After': new Date(Date.now() + 18_000_000).toUTCString() }
const DOWN = { path: '/challenge', times: 1000, answer: { ...away(1), headers: IN_FIVE_HOURS } }
for (const [about, fault, code, shown, told] of [
  ['an endpoint that cannot be reached', undefined, 'network', /cannot be reached/, 'http://127.0.0.1'],
  ['503 for good', DOWN, 'unavailable', /service is busy/, 'Away.'],
] as const)
  test(`${about}: tried five times, then said, also to the integrator; the button tries again`, async () => {
    const endpoint = fault === undefined ? `endpoint="http://127.0.0.1:${await freePort()}"` : ''
    const { page, notes } = await open(endpoint, { ...(fault && { fault }), ...CLOCK })
    await untilFailed(page)
    await assertTold(page, code, shown)
    assert.ok(notes.consoleErrors.some(line => line.includes(`pow-gate: ${told}`)))
    assert.deepEqual(notes.pageErrors, [])
    if (fault === undefined) return
    assert.equal(gateway.count('GET /challenge'), 5)
    gateway.recover()
    await tryAgain(page)
    assert.equal(await errorCode(page), undefined)
  })

test('an error of the page’s own making: told, with a code, and the button tries again', async () => {
  const getter = "{ get: () => { throw new Error('mine') }, configurable: true }"
  const script = `Object.defineProperty(Navigator.prototype, 'plugins', ${getter})` // signals.ts reads it
  const visit = { prepare: (page: Page) => page.addInitScript(script) }
  const { page } = await inState('failed', open('', { visit }))
  assert.equal(await errorCode(page), 'unexpected')
  await page.evaluate('delete Navigator.prototype.plugins')
  await tryAgain(page)
})

test('an event handler of the page that throws harms nothing', async () => {
  const { page } = await open('auto="off"')
  await page.evaluate(`${GATE}.addEventListener('statechange', () => { throw new Error('mine') })`)
  await verify(page)
})

test('a slow device: three challenges are replaced before they expire, whatever the page’s clock says; progress and words never go back', async () => {
  const lifetimeMs = 463_000 // that of 28 bits by docs/reference/limits.md; `endless` asks for 32, which nobody finds in time
  const givenUpMs = lifetimeMs * 0.96 // flow.ts gives a challenge up a little before, at 95 %
  const hard = { path: '/challenge', times: 100, answer: endless(lifetimeMs) }
  const prepare = (opened: Page) => opened.clock.install({ time: new Date('2001-01-01') })
  const more = `<script>shares = []
texts = []
addEventListener('progress', ({ detail }) => shares.push(detail.share), true)
addEventListener('statechange', ({ target }) => {
  const text = target.shadowRoot.querySelector('.text')
  new MutationObserver(() => texts.push(text.textContent)).observe(text, { childList: true })
}, { capture: true, once: true })</script>`
  const { page } = await open('solver="page"', { fault: hard, more, visit: { prepare } })
  const longer = (count: number) => page.evaluate<number[] | null>(`shares.length > ${count} ? shares : null`)
  const sharesAfter = (count: number) => eventually(60_000, 'progress', () => longer(count))
  let shares: number[] = []
  for (const challenges of [1, 2, 3]) {
    shares = await sharesAfter(shares.length)
    assert.equal(gateway.count('GET /challenge'), challenges)
    await page.clock.fastForward(givenUpMs)
    await eventually(60_000, 'another challenge', () => gateway.count('GET /challenge') > challenges)
    shares = (await page.evaluate('shares')) as number[]
  }
  shares = await sharesAfter(shares.length)
  const ascending = shares.toSorted((a, b) => a - b)
  assert.deepEqual(shares, ascending)
  assert.equal(gateway.count('POST /verify'), 0)
  assert.equal(await page.evaluate(`${GATE}.state`), 'working')
  // The fourth challenge is the last (ROUNDS_MAX of flow.ts). After ten seconds the text becomes "Still verifying after ...".
  for (let second = 0; second < 12; second++) await page.clock.fastForward(1000)
  await page.clock.fastForward(givenUpMs)
  await untilState(page, 'failed')
  assert.equal(await errorCode(page), 'outlived')
  const texts = (await page.evaluate('texts')) as string[]
  assert.match(texts.join(), /^(Verifying…,)?(Still verifying after [^,]+,)+Verification expired$/)
  assert.equal(gateway.count('GET /challenge'), 4)
  assert.equal(await page.locator('pow-gate button').textContent(), 'Try again')
})
