/**
 * The element in a page: start, form field, events, renewal, several elements, other origins. `open` (harness/widget.ts) opens a page
 * with one, which verifies on load unless `auto` says otherwise. What `gateway` and `pages` count begins anew with each `open`.
 */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import { usualSolution } from '../../src/http/schemas.ts'
import { openBrowser, startRenderer } from '../harness/browser.ts'
import { Client } from '../harness/client.ts'
import { documentedReads, readsOf, WATCH_READS } from '../harness/device-reads.ts'
import { eventually } from '../harness/eventually.ts'
import { EASY, UNLIMITED } from '../harness/service.ts'
import {
  assertQuiet,
  EXPIRED_MS,
  endless,
  errorCode,
  execute,
  formPage,
  GATE,
  inState,
  pinnedTag,
  posted,
  press,
  RENEWED_MS,
  scriptTag,
  startStage,
  tokenOf,
  untilState,
  verify,
  WITH_CLOCK,
} from '../harness/widget.ts'

const stage = await startStage(UNLIMITED)
const { service, site, gateway, pages, open } = stage
const CLOCK = { visit: WITH_CLOCK }

const isValid = (page: Page) => page.evaluate('document.forms[0].checkValidity()')
const send = (page: Page) => page.click('text=Send')
const untilDefined = (page: Page) => page.waitForFunction('customElements.get("pow-gate")')

async function redeem(token: unknown, apiKey = site.apiKey) {
  return (await new Client(service.url).verifyToken(apiKey, { token })).json
}

async function postedToken(): Promise<string> {
  const post = await posted(stage)
  assert.equal(post.get('name'), 'Ada')
  const tokens = post.getAll('powgate-token')
  assert.equal(tokens.length, 1)
  return tokens[0]!
}

test('on load: verified without a touch; the form carries the token, which the backend redeems', async () => {
  const { page, notes } = await inState('verified', open())
  await send(page)
  const answer = await redeem(await postedToken())
  assert.equal(answer.success, true)
  assert.equal(answer.ip, gateway.clientAddress)
  assert.deepEqual(notes.pageErrors, [])
})

test('on load, sent at once: the form waits for the token and goes off by itself, once', async () => {
  const release = gateway.hold('/verify')
  const { page } = await open()
  await untilState(page, 'working')
  assert.equal(await isValid(page), false)
  await send(page)
  await send(page)
  await page.locator('input[name=name]').press('Enter')
  assert.equal(pages.forms.length, 0)
  release()
  assert.equal((await redeem(await postedToken())).success, true)
  assert.equal(pages.forms.length, 1)
})

for (const [how, form, submit] of [
  ['a click', '', send],
  ['the Enter key', '', (page: Page) => page.locator('input[name=name]').press('Enter')],
  ['a click, in a form without validation', 'novalidate', send],
] as const) {
  test(`on submit, by ${how}: verified first, then sent`, async () => {
    const { page } = await open('auto="submit"', { form })
    await page.waitForTimeout(300)
    assert.equal(gateway.count('GET /challenge'), 0)
    await submit(page)
    assert.equal((await redeem(await postedToken())).success, true)
  })
}

test('off: the form stays invalid until code or the button starts it', async () => {
  const { page } = await open('auto="off"')
  await send(page)
  await page.waitForTimeout(300)
  assert.equal(gateway.count('GET /challenge'), 0)
  assert.equal(pages.forms.length, 0)
  await verify(page)
})

test('execute() gives the token; several calls share one verification; reset() starts anew', async () => {
  const { page } = await open('auto="off"')
  await untilDefined(page)
  const tokens = (await page.evaluate(`Promise.all([1, 2, 3].map(() => ${GATE}.execute()))`)) as string[]
  assert.equal(new Set(tokens).size, 1)
  assert.equal(gateway.count('GET /challenge'), 1)
  assert.equal((await redeem(tokens[0]!)).success, true)
  assert.equal(await page.evaluate(`${GATE}.execute()`), tokens[0])
  const next = await page.evaluate(`(${GATE}.reset(), ${GATE}.execute())`)
  assert.notEqual(next, tokens[0])
  assert.equal((await redeem(next)).success, true)
})

test('cancel() and leaving the document end a verification, and nothing of it is left', async () => {
  gateway.fail({ path: '/challenge', times: 2, delayMs: 700 })
  const { page, notes } = await open('auto="off"')
  await untilDefined(page)
  const codes = await page.evaluate(`(async () => {
    const gate = ${GATE}
    const codes = []
    const first = gate.execute()
    gate.cancel()
    await first.catch(error => codes.push(error.name, error.code, gate.state))
    const second = gate.execute()
    gate.remove()
    await second.catch(error => codes.push(error.code))
    return codes
  })()`)
  assert.deepEqual(codes, ['PowGateError', 'cancelled', 'idle', 'cancelled'])
  await page.waitForTimeout(1000)
  assert.equal(gateway.count('POST /verify'), 0)
  await eventually(60_000, 'the frame is gone', () => page.frames().length === 1)
  assert.deepEqual(notes.pageErrors, [])
})

test('invisible: nothing to see, and the form works', async () => {
  const { page } = await inState('verified', open('invisible'))
  assert.equal(await page.locator('pow-gate .box').isVisible(), false)
  await send(page)
  await postedToken()
})

test('the token is renewed before it expires, in silence', async () => {
  const { page } = await inState('verified', open('auto="load"', CLOCK))
  const first = await tokenOf(page)
  await page.evaluate(`window.seen = []
    for (const type of ['statechange', 'verified']) ${GATE}.addEventListener(type, () => seen.push(type))`)
  await page.clock.fastForward(RENEWED_MS)
  await eventually(60_000, 'renewed', () => page.evaluate('seen.length > 0'))
  assert.deepEqual(await page.evaluate('seen'), ['verified'])
  assert.notEqual(await tokenOf(page), first)
  assert.equal((await redeem(await tokenOf(page))).success, true)
})

test('without renewal it expires: the form is invalid again, and the button verifies again', async () => {
  const { page } = await open('auto="off"', CLOCK)
  await verify(page)
  assert.equal(await isValid(page), true)
  await page.clock.fastForward(EXPIRED_MS)
  await untilState(page, 'expired')
  assert.equal(await isValid(page), false)
  assert.equal(await tokenOf(page), null)
  await verify(page)
})

test('a form that is reset, and a page that comes back from the browser’s cache, start anew', async () => {
  const { page } = await inState('verified', open())
  const before = await tokenOf(page)
  await page.evaluate('document.forms[0].reset()')
  await untilState(page, 'verified')
  const after = await tokenOf(page)
  assert.notEqual(after, before)
  await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`)
  await untilState(page, 'verified')
  assert.notEqual(await tokenOf(page), after)
})

// Chromium forgets it if the form's first fields have other names than those of the page's markup, which lacks the token's field.
test('Back gives back what was typed', async () => {
  const { page } = await inState('verified', open())
  await page.fill('input[name=name]', 'Grace')
  await page.goto('about:blank')
  await page.goBack()
  assert.equal(await page.inputValue('input[name=name]'), 'Grace')
})

test('a disabled element does nothing until it is enabled', async () => {
  const { page } = await open('disabled', CLOCK)
  await page.waitForTimeout(300)
  assert.equal(gateway.count('GET /challenge'), 0)
  assert.equal(await page.getByRole('button', { name: 'Verify' }).count(), 0)
  assert.equal(await isValid(page), true)
  await page.evaluate(`${GATE}.disabled = false`)
  await untilState(page, 'verified')
  await page.evaluate(`${GATE}.disabled = true`)
  await page.clock.fastForward(EXPIRED_MS)
  await untilState(page, 'expired')
  await page.evaluate(`${GATE}.disabled = ''`) // as Preact does for undefined
  await untilState(page, 'verified')
})

test('attributes that come late, a site key that is put right, another field name', async () => {
  const { page } = await inState('failed', open('', { siteKey: '' }))
  await page.evaluate(`${GATE}.setAttribute('site-key', '${site.siteKey}')`)
  await untilState(page, 'verified')
  await page.evaluate(`${GATE}.setAttribute('name', 'proof')`)
  await send(page)
  const post = await posted(stage)
  assert.match(post.get('proof')!, /^\d{13}\|/)
  assert.equal(post.get('powgate-token'), null)
})

test('a form attribute that changes or goes: the token’s field moves to the other form', async () => {
  const script = `<form id="other"></form>${scriptTag(gateway)}`
  const { page } = await inState('verified', open('', { script, form: 'id="first"' }))
  for (const id of ['other', 'first', null]) {
    await page.evaluate(`${GATE}.form = ${JSON.stringify(id)}`)
    assert.equal(await page.evaluate(`${GATE}.querySelector('input').form.id`), id ?? 'first')
  }
})

test('as a module, with integrity, by its versioned name, imported, and twice', async () => {
  const scripts = [
    scriptTag(gateway, 'type="module"'),
    pinnedTag(gateway),
    `<script type="module">import '${gateway.origin()}/widget.js'</script>`,
    ['', 'type="module"', 'async'].map(attributes => scriptTag(gateway, attributes)).join(''),
  ]
  for (const script of scripts) {
    const { page, notes } = await open('', { script })
    await untilState(page, 'verified').catch(() => assert.fail(`${script} ${notes.troubles}`))
    assertQuiet(notes, script)
  }
})

test('allowed origins: a page of one works, a page of another is told so in the element and on the console', async () => {
  const origins = [pages.origin('allowed.example')]
  const { siteKey, apiKey } = await service.createSite({ origins, difficulty: EASY })
  const allowed = await open('', { siteKey, host: 'allowed.example' })
  await untilState(allowed.page, 'verified')
  assert.equal((await redeem(await tokenOf(allowed.page), apiKey)).success, true)

  const other = await open('', { siteKey, host: 'other.example' })
  await untilState(other.page, 'failed')
  assert.equal(await errorCode(other.page), 'origin-not-allowed')
  assert.match(other.notes.consoleErrors.join(), /other\.example.* is not an allowed origin/)
  assert.match((await other.page.locator('pow-gate .detail').textContent())!, /origin-not-allowed/)
  assert.deepEqual(other.notes.pageErrors, [])
})

test('headless Chromium as it comes is a bot: its own flags lower the score as documented', async () => {
  const automated = await openBrowser({ isAutomated: true })
  await startRenderer(automated)
  const { siteKey, apiKey } = await service.createSite({ threshold: 0, difficulty: EASY })
  let sent!: Promise<Request>
  const prepare = async (page: Page) => {
    sent = page.waitForRequest(request => request.url().endsWith('/verify') && request.method() === 'POST')
  }
  // A sole thread reads the renderer's name before it searches. With more, another may find the counter first, and the name comes too late.
  const { page } = await open('threads="1"', { siteKey, inBrowser: automated, visit: { prepare } })
  const { environment, fingerprintHash } = (await sent).postDataJSON()
  assert.match(fingerprintHash, /^[0-9a-f]{64}$/)
  assert.equal(Object.keys(environment).length, 7)
  assert.deepEqual([environment.webdriver, environment.swiftShader], [true, true])
  await untilState(page, 'verified')
  const set = Object.keys(SCORE_WEIGHTS).filter(flag => environment[flag]) as (keyof typeof SCORE_WEIGHTS)[]
  const penalty = set.reduce((sum, flag) => sum + SCORE_WEIGHTS[flag], 0)
  const { score } = await redeem(await tokenOf(page), apiKey)
  assert.equal(score, Math.max(0, Math.round((1 - penalty) * 100) / 100))

  // It does not pass at the usual threshold, and the page learns nothing but that.
  const refused = await open('', { inBrowser: automated })
  await untilState(refused.page, 'failed')
  assert.equal(await errorCode(refused.page), 'not-passed')
  assert.doesNotMatch(await refused.page.locator('pow-gate .box').innerText(), /score|webdriver|0\.\d/i)
})

/** `header` is X-Powgate-Signals, which tells the widget what the site's owner lets it read. Early versions of the service do not send it. */
for (const { header, signals, flagCount } of [
  { header: 'none', signals: 'none', flagCount: 0 },
  { header: 'flags', signals: 'flags', flagCount: 7 },
  { header: undefined, signals: 'flags', flagCount: 7 },
] as const)
  test(`signals, header ${header}: of the browser nothing is read before the challenge answers, and then what the page on privacy says`, async () => {
    const reads = new Set<string>()
    // Mode `page` reads the renderer's name in the page, where it is noted; mode `frame` reads how many threads there can be.
    for (const solver of ['page', 'frame']) {
      let readsBefore: unknown
      const prepare = async (page: Page) => {
        await page.addInitScript(WATCH_READS)
        await page.route('**/challenge*', async route => {
          const response = await route.fetch()
          readsBefore = await readsOf(page)
          const headers: Record<string, string> = { ...response.headers() }
          headers['access-control-expose-headers'] = 'X-Powgate-Signals'
          delete headers['x-powgate-signals']
          const told = header === undefined ? {} : { 'x-powgate-signals': header }
          await route.fulfill({ response, headers: { ...headers, ...told } })
        })
      }
      const { page } = await open(`solver="${solver}" auto="off"`, { visit: { prepare } })
      const sent = page.waitForRequest(request => request.postData() !== null)
      await press(page, 'Verify')
      const { environment, fingerprintHash } = (await sent).postDataJSON()
      assert.deepEqual(readsBefore, [], solver)
      assert.equal(Object.keys(environment ?? {}).length, flagCount)
      assert.equal(fingerprintHash, createHash('sha256').digest('hex'), 'the hash of nothing')
      const isUsual = usualSolution((await sent).postDataBuffer()!) !== undefined
      assert.equal(isUsual, flagCount === 7, 'the service reads this body by a pattern, the quick way')
      for (const name of await readsOf(page)) reads.add(name)
    }
    assert.deepEqual([...reads].sort(), documentedReads(signals))
  })

test('nothing is stored, and nobody but the service is asked', async () => {
  const hosts = new Set<string>()
  const prepare = async (page: Page) =>
    page.on('request', request => hosts.add(new URL(request.url()).origin))
  const { page } = await inState('verified', open('', { visit: { prepare } }))
  assert.deepEqual([...hosts].sort(), [pages.origin(), gateway.origin()].sort())
  const stored = `Promise.all([document.cookie, localStorage.length, sessionStorage.length,
    indexedDB.databases().then(({ length }) => length), caches.keys().then(({ length }) => length)])`
  assert.deepEqual(await page.evaluate(stored), ['', 0, 0, 0, 0])
  assert.deepEqual(await page.context().cookies(), [])
})

test('cancel() keeps a token that is there, which still expires; so does moving the element', async () => {
  const { page } = await open('auto="off"', CLOCK)
  await verify(page)
  await page.evaluate(`${GATE}.cancel()`)
  assert.equal(await page.evaluate(`${GATE}.state`), 'verified')
  await page.evaluate(`${GATE}.parentElement.append(${GATE})`)
  assert.equal(await isValid(page), true)
  await page.clock.fastForward(EXPIRED_MS)
  await untilState(page, 'expired')
})

test('a token that expired while timers stood still, as in sleep, is not handed out', async () => {
  const { page } = await open('auto="off"', CLOCK)
  await verify(page)
  const before = await tokenOf(page)
  await page.clock.setSystemTime(Date.now() + EXPIRED_MS)
  assert.equal(await page.evaluate(`${GATE}.expiresAt`), null)
  assert.equal(await tokenOf(page), null)
  assert.equal(await page.evaluate(`${GATE}.state`), 'expired')
  assert.notEqual(await page.evaluate(`${GATE}.execute()`), before)
})

test('nor is it sent, if a script submits the form right after the sleep', async () => {
  const { page } = await inState('verified', open('', CLOCK))
  const before = await tokenOf(page)
  await page.clock.setSystemTime(Date.now() + EXPIRED_MS)
  await page.evaluate('document.forms[0].requestSubmit()')
  assert.notEqual(await postedToken(), before)
})

test('cancel() in the middle of a solve stops it at once, and a new one can start', async () => {
  const fault = { path: '/challenge', answer: endless() } // for one request: the next challenge is the service's
  const { page, notes } = await open('threads="1"', { fault })
  await page.evaluate(`new Promise(resolve => ${GATE}.addEventListener('progress', resolve, { once: true }))`)
  assert.equal(page.frames().length, 2)
  const state = await page.evaluate(`(() => { ${GATE}.cancel(); return ${GATE}.state })()`)
  assert.equal(state, 'idle')
  await eventually(60_000, 'the frame is gone', () => page.frames().length === 1)
  await execute(page)
  await untilState(page, 'verified')
  assert.deepEqual(notes.pageErrors, [])
})

test('cancel() any number of microtasks after execute() cancels it', async () => {
  const { page } = await open('auto="off"')
  await untilDefined(page)
  // After four the challenge is asked for.
  for (let steps = 0; steps < 11; steps++)
    await page.evaluate(`(async () => {
      ${GATE}.execute().catch(() => {})
      for (let step = 0; step < ${steps}; step++) await null
      ${GATE}.cancel()
    })()`)
  await page.evaluate(`${GATE}.execute()`) // It would wait for one that goes on.
  assert.equal(gateway.count('POST /verify'), 1)
})

test('cancel() and execute() in a handler of the first event take effect', async () => {
  const { page, notes } = await open('auto="off"')
  await untilDefined(page)
  const code = await page.evaluate(`(() => {
    ${GATE}.addEventListener('statechange', () => ${GATE}.cancel(), { once: true })
    return ${GATE}.execute().catch(error => error.code)
  })()`)
  assert.equal(code, 'cancelled')
  assert.equal(await page.evaluate(`${GATE}.state`), 'idle')
  gateway.requests.length = 0 // what was cancelled may have asked
  const isSame = await page.evaluate(`(async () => {
    let inner
    ${GATE}.addEventListener('statechange', () => { inner = ${GATE}.execute() }, { once: true })
    return (await ${GATE}.execute()) === (await inner)
  })()`)
  assert.equal(isSame, true)
  assert.equal(gateway.count('GET /challenge'), 1)
  assert.deepEqual(notes.pageErrors, [])
})

test('a form that is not complete says so, and is not sent behind the visitor’s back, however it is mended', async () => {
  const release = gateway.hold('/verify')
  const { page } = await open('', { edit: ['value="Ada"', 'required'] })
  await untilState(page, 'working')
  await send(page)
  assert.equal(await page.evaluate('document.activeElement.name'), 'name')
  await page.locator('input[name=name]').pressSequentially('Ada')
  release()
  await untilState(page, 'verified')
  await page.waitForTimeout(300)
  assert.equal(pages.forms.length, 0)
  await send(page)
  await postedToken()
})

test('a page that checks its form in handlers of its own submits nothing by that', async () => {
  const { page } = await open('auto="submit"', { fields: '<textarea name="text"></textarea>' })
  await untilDefined(page)
  await page.evaluate(`(() => {
    const [form] = document.forms
    form.text.addEventListener('keydown', () => form.checkValidity())
    form.querySelector('button').addEventListener('click', event => { event.preventDefault(); form.checkValidity() })
  })()`)
  await page.locator('textarea').press('Enter')
  await send(page)
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 0)
  assert.equal(pages.forms.length, 0)
})

test('a button that is replaced while the form waits: the form is sent', async () => {
  const release = gateway.hold('/verify')
  const { page } = await open()
  await untilState(page, 'working')
  await send(page)
  await page.evaluate(`document.querySelector('form > button').outerHTML = '<button>Send</button>'`)
  release()
  await postedToken()
})

test('a button without validation sends the form at once, without a token', async () => {
  const release = gateway.hold('/challenge')
  const { page } = await open('', { fields: '<button formnovalidate>Leave</button>' })
  await page.click('text=Leave')
  assert.equal((await posted(stage)).get('powgate-token'), null)
  release()
})

test('a form inside a shadow root, in the language around it', async () => {
  const inner = formPage(`site-key="${site.siteKey}" auto="submit"`, { form: 'novalidate' })
  const [form] = /<form.*<\/form>/s.exec(inner)!
  const script = `<div lang="de"><template shadowrootmode="open">${form}</template></div>${scriptTag(gateway)}`
  const { page } = await open('auto="submit"', { form: 'novalidate', script, edit: [form, ''] })
  assert.equal(await page.evaluate(`document.querySelector('form')`), null, 'none outside')
  await page.locator('pow-gate .box[lang=de]').waitFor()
  await send(page)
  assert.equal((await redeem(await postedToken())).success, true)
})

test('the same value set again, and an empty text: nothing is lost', async () => {
  const { page, notes } = await inState('verified', open('text-required=""'))
  const token = await tokenOf(page)
  await page.evaluate(`${GATE}.setAttribute('site-key', ${GATE}.getAttribute('site-key'))`)
  assert.equal(await tokenOf(page), token)
  assert.deepEqual(notes.pageErrors, [])
})

test('an answer that is no token ends in an error, not in a storm of requests', async () => {
  const answer = { status: 200, body: { token: 'x|y', passed: true, expiresAt: Date.now() + 300_000 } }
  const { page } = await inState('failed', open('', { fault: { path: '/verify', times: 100, answer } }))
  assert.equal(await errorCode(page), 'unexpected-answer')
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 1)
})

test('on a slow network: from the script to the token four requests wait for each other', async () => {
  const delayMs = 500
  let inSeries = Number.POSITIVE_INFINITY
  // A busy machine may ask late, and so wait for what needed no wait.
  for (let attempt = 0; attempt < 10 && inSeries > 4; attempt++) {
    await inState('verified', open('', { fault: { path: /./, times: 100, delayMs } }))
    gateway.recover() // before the next attempt adds the same fault
    const kinds = new Set(gateway.requests.filter(request => !request.startsWith('OPTIONS')))
    const timesMs = [...kinds].flatMap(kind => gateway.timesOf(kind)).sort((a, b) => a - b)
    /** Each request, and its place in the longest series: one after the last of those that were answered when it came. */
    const asked: { atMs: number; place: number }[] = []
    for (const atMs of timesMs) {
      const answered = asked.filter(earlier => earlier.atMs + delayMs <= atMs)
      asked.push({ atMs, place: 1 + Math.max(0, ...answered.map(({ place }) => place)) })
    }
    inSeries = Math.min(inSeries, Math.max(...asked.map(({ place }) => place)))
  }
  assert.equal(inSeries, 4) // widget.js, then the frame and the challenge, then the worker, then /verify
})
