/** The element in a page: start, form field, events, renewal, several elements, other origins. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import { openBrowser, startRenderer, type VisitOptions } from '../harness/browser.ts'
import { documentedReads, readsOf, WATCH_READS } from '../harness/device-reads.ts'
import { eventually } from '../harness/eventually.ts'
import { UNLIMITED } from '../harness/service.ts'
import {
  assertQuiet,
  endless,
  formPage,
  GATE,
  startStage,
  untilState,
  visit,
  WITH_CLOCK,
} from '../harness/widget.ts'

/** For the page's clock, after a token: one that lives five minutes has been replaced by then, or has expired. */
const RENEWED_MS = 250_000
const EXPIRED_MS = 350_000

const { browser, service, site, gateway, pages } = await startStage(UNLIMITED)

const widget = (attributes = '') => `<script src="${gateway.origin()}/widget.js" ${attributes}></script>`

async function open(html: string, options: VisitOptions = {}) {
  pages.add('/form', html)
  pages.forms.length = 0
  gateway.requests.length = 0
  return visit(browser, `${pages.origin()}/form`, options)
}

const simple = (attributes = '', form = '') =>
  formPage(`site-key="${site.siteKey}" ${attributes}`, { script: widget(), form })

const tokenOf = (page: Page) => page.evaluate(`${GATE}.token`) as Promise<string>
const isValid = (page: Page) => page.evaluate('document.forms[0].checkValidity()')

async function verify(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Verify' }).click()
  await untilState(page, 'verified')
}

async function redeem(token: string, apiKey = site.apiKey) {
  const answer = await fetch(`${service.url}/verify-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ token }),
  })
  return (await answer.json()) as { success: boolean; score: number; ip: string; code?: string }
}

/** The token that the site's backend got with the form. */
async function postedToken(): Promise<string> {
  const post = await eventually(60_000, 'the form arrives', () => pages.forms[0]?.fields)
  assert.equal(post.get('name'), 'Ada')
  const tokens = post.getAll('powgate-token')
  assert.equal(tokens.length, 1)
  return tokens[0]!
}

test('on load: verified without a touch; the form carries the token, which the backend redeems', async () => {
  const { page, notes } = await open(simple())
  await untilState(page, 'verified')
  await page.click('text=Send')
  const answer = await redeem(await postedToken())
  assert.equal(answer.success, true)
  assert.equal(answer.ip, gateway.clientAddress)
  assert.deepEqual(notes.pageErrors, [])
})

test('on load, sent at once: the form waits for the token and goes off by itself, once', async () => {
  const answer = gateway.hold('/verify')
  const { page } = await open(simple())
  await untilState(page, 'working')
  assert.equal(await isValid(page), false)
  await page.click('text=Send')
  await page.click('text=Send')
  await page.locator('input[name=name]').press('Enter')
  assert.equal(pages.forms.length, 0)
  answer()
  assert.equal((await redeem(await postedToken())).success, true)
  assert.equal(pages.forms.length, 1)
})

test('on focus: nothing until somebody uses the form', async () => {
  const { page } = await open(simple('auto="focus"'))
  await page.waitForTimeout(400)
  assert.equal(gateway.count('GET /challenge'), 0)
  await page.locator('input[name=name]').focus()
  await untilState(page, 'verified')
  assert.equal(gateway.count('GET /challenge'), 1)
})

for (const [how, form, submit] of [
  ['a click', '', (page: Page) => page.click('text=Send')],
  ['the Enter key', '', (page: Page) => page.locator('input[name=name]').press('Enter')],
  ['a click, in a form without validation', 'novalidate', (page: Page) => page.click('text=Send')],
] as const) {
  test(`on submit, by ${how}: verified first, then sent`, async () => {
    const { page } = await open(simple('auto="submit"', form))
    await page.waitForTimeout(300)
    assert.equal(gateway.count('GET /challenge'), 0)
    await submit(page)
    assert.equal((await redeem(await postedToken())).success, true)
  })
}

test('the button that was pressed is sent along, also when the form had to wait', async () => {
  const html = simple('auto="submit"').replace(
    '<button>Send</button>',
    '<button name="action" value="save">Send</button>',
  )
  const { page } = await open(html)
  await page.click('text=Send')
  await postedToken()
  assert.equal(pages.forms[0]!.fields.get('action'), 'save')
})

test('a form with another invalid field is not sent, and says so', async () => {
  const html = simple('auto="submit"').replace('value="Ada"', 'required')
  const { page } = await open(html)
  await page.click('text=Send')
  await untilState(page, 'verified')
  await page.waitForTimeout(300)
  assert.equal(pages.forms.length, 0)
  assert.equal(await page.evaluate('document.activeElement.name'), 'name')
})

test('off: the form stays invalid until code or the button starts it', async () => {
  const { page } = await open(simple('auto="off"'))
  await page.click('text=Send')
  await page.waitForTimeout(300)
  assert.equal(gateway.count('GET /challenge'), 0)
  assert.equal(pages.forms.length, 0)
  await verify(page)
})

test('execute() gives the token; several calls share one verification; reset() starts anew', async () => {
  const { page } = await open(simple('auto="off"'))
  await page.waitForFunction('customElements.get("pow-gate")')
  const tokens = (await page.evaluate(`(() => {
    const gate = ${GATE}
    return Promise.all([gate.execute(), gate.execute(), gate.execute()])
  })()`)) as string[]
  assert.equal(new Set(tokens).size, 1)
  assert.equal(gateway.count('GET /challenge'), 1)
  assert.equal((await redeem(tokens[0]!)).success, true)
  assert.equal(await page.evaluate(`${GATE}.execute()`), tokens[0])
  const next = (await page.evaluate(
    `(() => { const gate = ${GATE}; gate.reset(); return gate.execute() })()`,
  )) as string
  assert.notEqual(next, tokens[0])
  assert.equal((await redeem(next)).success, true)
})

test('cancel() and leaving the document end a verification, and nothing of it is left', async () => {
  gateway.fail({ path: '/challenge', times: 2, delayMs: 700 })
  const { page, notes } = await open(simple('auto="off"'))
  await page.waitForFunction('customElements.get("pow-gate")')
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

test('invisible: nothing to see, and the form works; when it fails it shows why', async () => {
  const { page } = await open(simple('invisible'))
  await untilState(page, 'verified')
  assert.equal(await page.locator('pow-gate .box').isVisible(), false)
  await page.click('text=Send')
  await postedToken()

  gateway.fail({
    path: '/verify',
    answer: { status: 200, body: { token: null, passed: false, expiresAt: null } },
  })
  const failing = await open(simple('invisible'))
  await untilState(failing.page, 'failed')
  assert.equal(await failing.page.locator('pow-gate .box').isVisible(), true)
})

test('the token is renewed before it expires, in silence', async () => {
  const { page } = await open(simple('auto="load"'), WITH_CLOCK)
  await untilState(page, 'verified')
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
  const { page } = await open(simple('auto="off"'), WITH_CLOCK)
  await verify(page)
  assert.equal(await isValid(page), true)
  await page.clock.fastForward(EXPIRED_MS)
  await untilState(page, 'expired')
  assert.equal(await isValid(page), false)
  assert.equal(await tokenOf(page), null)
  await verify(page)
})

test('two elements on a page: each has its own token', async () => {
  const two = simple().replace(
    '</form>',
    `</form><form action="/received" method="post"><input name="name" value="Ada"><pow-gate auto="load" site-key="${site.siteKey}" id="second"></pow-gate><button>Other</button></form>`,
  )
  const { page } = await open(two)
  await untilState(page, 'verified', 'pow-gate:not(#second)')
  await untilState(page, 'verified', '#second')
  const tokens = (await page.evaluate(
    `[...document.querySelectorAll('pow-gate')].map(gate => gate.token)`,
  )) as string[]
  assert.equal(new Set(tokens).size, 2)
  await page.click('text=Other')
  assert.equal(await postedToken(), tokens[1])
})

test('a form that is reset, and a page that comes back, start anew; a disabled element does nothing', async () => {
  const { page } = await open(simple())
  await untilState(page, 'verified')
  const before = await tokenOf(page)
  await page.evaluate('document.forms[0].reset()')
  await untilState(page, 'verified')
  const after = await tokenOf(page)
  assert.notEqual(after, before)
  await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`)
  await untilState(page, 'verified')
  assert.notEqual(await tokenOf(page), after)

  const disabled = await open(simple('disabled'))
  await disabled.page.waitForTimeout(300)
  assert.equal(gateway.count('GET /challenge'), 0)
  assert.equal(await disabled.page.getByRole('button', { name: 'Verify' }).isDisabled(), true)
  assert.equal(await isValid(disabled.page), true)
  await disabled.page.evaluate(`${GATE}.removeAttribute('disabled')`)
  await untilState(disabled.page, 'verified')
})

test('attributes that come late, a site key that is put right, another field name', async () => {
  const { page } = await open(formPage('', { script: widget() }))
  await untilState(page, 'failed')
  await page.evaluate(`${GATE}.setAttribute('site-key', ${JSON.stringify(site.siteKey)})`)
  await untilState(page, 'verified')
  await page.evaluate(`${GATE}.setAttribute('name', 'proof')`)
  await page.click('text=Send')
  const post = await eventually(60_000, 'the form arrives', () => pages.forms[0]?.fields)
  assert.match(post.get('proof')!, /^\d{13}\|/)
  assert.equal(post.get('powgate-token'), null)
})

test('as a module, with integrity, by its versioned name, imported, and twice', async () => {
  const manifest = new URL('../../dist/widget/manifest.json', import.meta.url)
  const { integrity, files } = JSON.parse(readFileSync(manifest, 'utf8'))
  const { fileName } = files.find((file: { name: string }) => file.name === 'widget.js')
  const scripts = [
    widget('type="module"'),
    `<script src="${gateway.origin()}/widget/${fileName}" integrity="${integrity}" crossorigin="anonymous"></script>`,
    `<script type="module">import '${gateway.origin()}/widget.js'</script>`,
    widget() + widget('type="module"') + widget('async'),
  ]
  for (const script of scripts) {
    const { page, notes } = await open(formPage(`site-key="${site.siteKey}"`, { script }))
    await untilState(page, 'verified').catch(() => assert.fail(`${script} ${notes.troubles}`))
    assertQuiet(notes, script)
  }
})

test('allowed origins: a page of one works, a page of another is told so in the element and on the console', async () => {
  const guarded = await service.createSite({
    origins: [pages.origin('allowed.example')],
    difficulty: { base: 16, min: 16, max: 28 },
  })
  pages.add('/form', formPage(`site-key="${guarded.siteKey}"`, { script: widget() }))
  const allowed = await visit(browser, `${pages.origin('allowed.example')}/form`)
  await untilState(allowed.page, 'verified')
  const token = (await allowed.page.evaluate(`${GATE}.token`)) as string
  assert.equal((await redeem(token, guarded.apiKey)).success, true)

  const other = await visit(browser, `${pages.origin('other.example')}/form`)
  await untilState(other.page, 'failed')
  assert.equal(await other.page.evaluate(`${GATE}.error.code`), 'origin-not-allowed')
  assert.ok(
    other.notes.consoleErrors.some(
      text => text.includes('other.example') && text.includes('is not an allowed origin'),
    ),
  )
  assert.match((await other.page.locator('pow-gate .detail').textContent())!, /origin-not-allowed/)
  assert.deepEqual(other.notes.pageErrors, [])
})

test('headless Chromium as it comes is a bot: its own flags lower the score as documented', async () => {
  const honest = await openBrowser({ isAutomated: true })
  await startRenderer(honest)
  const open = await service.createSite({ threshold: 0, difficulty: { base: 16, min: 16, max: 28 } })
  // With one thread the renderer's name comes before the answer, which otherwise waits for that name 300 ms at most.
  pages.add('/form', formPage(`site-key="${open.siteKey}" threads="1"`, { script: widget() }))
  gateway.clientAddress = '203.0.113.77'
  let sent!: Promise<Request>
  const { page } = await visit(honest, `${pages.origin()}/form`, {
    prepare: async page => {
      sent = page.waitForRequest(request => request.url().endsWith('/verify') && request.method() === 'POST')
    },
  })
  const { environment, fingerprintHash } = (await sent).postDataJSON()
  assert.match(fingerprintHash, /^[0-9a-f]{64}$/)
  assert.equal(Object.keys(environment).length, 7)
  assert.equal(environment.webdriver, true)
  assert.equal(environment.swiftShader, true)
  await untilState(page, 'verified')
  const token = await tokenOf(page)
  const { score } = await redeem(token, open.apiKey)
  const penalty = Object.entries(environment).reduce(
    (sum, [flag, isSet]) => sum + (isSet ? SCORE_WEIGHTS[flag as 'webdriver'] : 0),
    0,
  )
  assert.equal(score, Math.max(0, Math.round((1 - penalty) * 100) / 100))

  // At the usual threshold it does not pass, and the page learns nothing but that.
  pages.add('/form', simple())
  const refused = await visit(honest, `${pages.origin()}/form`)
  await untilState(refused.page, 'failed')
  assert.equal(await refused.page.evaluate(`${GATE}.error.code`), 'not-passed')
  assert.doesNotMatch(await refused.page.locator('pow-gate .box').innerText(), /score|webdriver|0\.\d/i)
})

for (const [header, flags, signals] of [
  ['none', 0, 'none'],
  ['flags', 7, 'flags'],
  [undefined, 7, 'flags'],
  ['all', 7, 'all'],
] as const)
  test(`signals, header ${header}: of the browser nothing is read before the challenge answers, and then what the page on privacy says`, async () => {
    const reads = new Set<string>()
    // In the page's own thread the slow traits are read in sight; in the frame, the number of threads is chosen.
    for (const solver of ['page', 'frame']) {
      let nonce = ''
      let readsBefore: unknown
      const { page } = await open(simple(`solver="${solver}" auto="off"`), {
        prepare: async page => {
          await page.addInitScript(WATCH_READS)
          await page.route('**/challenge*', async route => {
            const response = await route.fetch()
            nonce = (await response.json()).nonce
            readsBefore = await readsOf(page)
            const headers: Record<string, string> = { ...response.headers() }
            headers['access-control-expose-headers'] = 'X-Powgate-Signals'
            if (header === undefined) delete headers['x-powgate-signals']
            else headers['x-powgate-signals'] = header
            await route.fulfill({ response, headers })
          })
        },
      })
      const sent = page.waitForRequest(request => request.postData() !== null)
      await page.getByRole('button', { name: 'Verify' }).click()
      const { environment, fingerprintHash } = (await sent).postDataJSON()
      assert.deepEqual(readsBefore, [], solver)
      assert.equal(Object.keys(environment ?? {}).length, flags)
      const ofNonce = createHash('sha256').update(nonce).digest('hex')
      assert.equal(fingerprintHash === ofNonce, header !== 'all')
      for (const name of await readsOf(page)) reads.add(name)
    }
    assert.deepEqual([...reads].sort(), documentedReads(signals))
  })

test('a site without signals, on one thread: of the browser nothing is read at all', async () => {
  const { siteKey } = await service.createSite({
    difficulty: { base: 16, min: 16, max: 28 },
    signals: 'none',
  })
  const { page } = await open(formPage(`site-key="${siteKey}" threads="1"`, { script: widget() }), {
    prepare: page => page.addInitScript(WATCH_READS),
  })
  await untilState(page, 'verified')
  assert.deepEqual(await readsOf(page), [])
})

test('nothing is stored, and nobody but the service is asked', async () => {
  const hosts = new Set<string>()
  const { page } = await open(simple(), {
    prepare: async page => page.on('request', request => hosts.add(new URL(request.url()).origin)),
  })
  await untilState(page, 'verified')
  assert.deepEqual([...hosts].sort(), [pages.origin(), gateway.origin()].sort())
  const left = await page.evaluate(
    `(async () => [document.cookie, localStorage.length, sessionStorage.length, (await indexedDB.databases()).length, (await caches.keys()).length])()`,
  )
  assert.deepEqual(left, ['', 0, 0, 0, 0])
  assert.deepEqual(await page.context().cookies(), [])
})

test('cancel() keeps a token that is there, which still expires; so does moving the element', async () => {
  const { page } = await open(simple('auto="off"'), WITH_CLOCK)
  await verify(page)
  await page.evaluate(`${GATE}.cancel()`)
  assert.equal(await page.evaluate(`${GATE}.state`), 'verified')
  await page.evaluate(`${GATE}.parentElement.append(${GATE})`)
  assert.equal(await isValid(page), true)
  await page.clock.fastForward(EXPIRED_MS)
  await untilState(page, 'expired')
})

test('a token that expired while timers stood still, as in sleep, is not handed out', async () => {
  const { page } = await open(simple('auto="off"'), WITH_CLOCK)
  await verify(page)
  const before = await tokenOf(page)
  await page.clock.setSystemTime(Date.now() + EXPIRED_MS)
  assert.equal(await tokenOf(page), null)
  assert.equal(await page.evaluate(`${GATE}.state`), 'expired')
  assert.notEqual(await page.evaluate(`${GATE}.execute()`), before)
})

test('nor is it sent, if a script submits the form right after the sleep', async () => {
  const { page } = await open(simple(), WITH_CLOCK)
  await untilState(page, 'verified')
  const before = await tokenOf(page)
  await page.clock.setSystemTime(Date.now() + EXPIRED_MS)
  await page.evaluate('document.forms[0].requestSubmit()')
  assert.notEqual(await postedToken(), before)
})

test('cancel() in the middle of a solve stops it at once, and a new one can start', async () => {
  gateway.fail({ path: '/challenge', answer: endless() })
  const { page, notes } = await open(simple('threads="1"'))
  await page.evaluate(`new Promise(resolve => ${GATE}.addEventListener('progress', resolve, { once: true }))`)
  assert.equal(page.frames().length, 2)
  const state = await page.evaluate(`(() => { ${GATE}.cancel(); return ${GATE}.state })()`)
  assert.equal(state, 'idle')
  await eventually(60_000, 'the frame is gone', () => page.frames().length === 1)
  await page.evaluate(`void ${GATE}.execute()`)
  await untilState(page, 'verified')
  assert.deepEqual(notes.pageErrors, [])
})

test('a handler that cancels, asks again or throws in the first event does what it says', async () => {
  const { page, notes } = await open(simple('auto="off"'))
  await page.waitForFunction('customElements.get("pow-gate")')
  const code = await page.evaluate(`(() => {
    ${GATE}.addEventListener('statechange', () => ${GATE}.cancel(), { once: true })
    return ${GATE}.execute().catch(error => error.code)
  })()`)
  assert.equal(code, 'cancelled')
  assert.equal(await page.evaluate(`${GATE}.state`), 'idle')
  gateway.requests.length = 0
  const isSame = await page.evaluate(`(async () => {
    let inner
    ${GATE}.addEventListener('statechange', () => { inner = ${GATE}.execute() }, { once: true })
    return (await ${GATE}.execute()) === (await inner)
  })()`)
  assert.equal(isSame, true)
  assert.equal(gateway.count('GET /challenge'), 1)
  assert.deepEqual(notes.pageErrors, [])
})

test('three elements that solve on the page’s own thread all come to an end', async () => {
  const one = `<pow-gate auto="load" site-key="${site.siteKey}" solver="page"></pow-gate>`
  const { page } = await open(simple('solver="page"').replace('</form>', `${one}${one}</form>`))
  await eventually(60_000, 'all are verified', () =>
    page.evaluate(`[...document.querySelectorAll('pow-gate')].every(({ state }) => state === 'verified')`),
  )
})

test('a form that is not complete is not sent behind the visitor’s back, however it is mended', async () => {
  const answer = gateway.hold('/verify')
  const { page } = await open(simple().replace('value="Ada"', 'required'))
  await untilState(page, 'working')
  await page.click('text=Send')
  await page.locator('input[name=name]').pressSequentially('Ada')
  answer()
  await untilState(page, 'verified')
  await page.waitForTimeout(300)
  assert.equal(pages.forms.length, 0)
  await page.click('text=Send')
  await postedToken()
})

test('a page that checks its form in handlers of its own submits nothing by that', async () => {
  const text = '<textarea name="text"></textarea>'
  const { page } = await open(simple('auto="submit"').replace('<button>', `${text}<button>`))
  await page.waitForFunction('customElements.get("pow-gate")')
  await page.evaluate(`(() => {
    const [form] = document.forms
    form.text.addEventListener('keydown', () => form.checkValidity())
    form.querySelector('button').addEventListener('click', event => { event.preventDefault(); form.checkValidity() })
  })()`)
  await page.locator('textarea').press('Enter')
  await page.click('text=Send')
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 0)
  assert.equal(pages.forms.length, 0)
})

test('a button that is replaced while the form waits, and one that leaves without validation', async () => {
  const answer = gateway.hold('/verify')
  const { page } = await open(simple())
  await untilState(page, 'working')
  await page.click('text=Send')
  await page.evaluate(`document.querySelector('form > button').outerHTML = '<button>Send</button>'`)
  answer()
  await postedToken()

  const challenge = gateway.hold('/challenge')
  const leaving = await open(simple().replace('<button>', '<button formnovalidate>Leave</button><button>'))
  await leaving.page.click('text=Leave')
  await eventually(60_000, 'it is sent at once', () => pages.forms.length === 1)
  assert.equal(pages.forms[0]!.fields.get('powgate-token'), null)
  challenge()
})

test('a form inside a shadow root', async () => {
  const inner = formPage(`site-key="${site.siteKey}" auto="submit"`, { form: 'novalidate' })
  const form = /<form.*<\/form>/s.exec(inner)![0]
  const html = `<!doctype html><html lang="en"><title>Shadow</title><div><template shadowrootmode="open">${form}</template></div>${widget()}</html>`
  const { page } = await open(html)
  await page.click('text=Send')
  assert.equal((await redeem(await postedToken())).success, true)
})

test('the same value set again, an empty text, an element that comes late: nothing is lost', async () => {
  const { page, notes } = await open(simple('text-required=""'))
  await untilState(page, 'verified')
  const token = await tokenOf(page)
  await page.evaluate(`${GATE}.setAttribute('site-key', ${GATE}.getAttribute('site-key'))`)
  assert.equal(await tokenOf(page), token)
  assert.deepEqual(notes.pageErrors, [])
})

test('an answer that is no token ends in an error, not in a storm of requests', async () => {
  const answer = { status: 200, body: { token: 'x|y', passed: true, expiresAt: Date.now() + 300_000 } }
  gateway.fail({ path: '/verify', times: 100, answer })
  const { page } = await open(simple())
  await untilState(page, 'failed')
  assert.equal(await page.evaluate(`${GATE}.error.code`), 'unexpected-answer')
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 1)
  gateway.recover()
})

test('on a slow network: from the script to the token four requests wait for each other', async () => {
  const delayMs = 500
  let series = Number.POSITIVE_INFINITY
  // A busy machine may ask late, and so wait for what needed no wait.
  for (let attempt = 0; attempt < 10 && series > 4; attempt++) {
    gateway.fail({ path: /./, times: 100, delayMs })
    const { page } = await open(simple())
    await untilState(page, 'verified')
    gateway.recover()
    const asked = [...new Set(gateway.requests.filter(request => !request.startsWith('OPTIONS')))]
    const timesMs = asked.flatMap(request => gateway.timesOf(request)).sort((a, b) => a - b)
    const depths: number[] = []
    for (const atMs of timesMs)
      depths.push(1 + Math.max(0, ...depths.filter((_, index) => timesMs[index]! + delayMs <= atMs)))
    series = Math.min(series, Math.max(...depths))
  }
  assert.equal(series, 4)
})
