/**
 * The scripts that replace those of Turnstile, hCaptcha and reCAPTCHA, each in a page that was written for the vendor: callbacks,
 * functions and form fields do what the vendor documents, and the backend's call accepts the token.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { OLD_LIBRARIES } from '../harness/old-libraries.ts'
import { ALWAYS_EASY, UNLIMITED } from '../harness/service.ts'
import {
  assertQuiet,
  EXPIRED_MS,
  posted,
  RENEWED_MS,
  startStage,
  visit,
  WITH_CLOCK,
} from '../harness/widget.ts'
import { REFUSED } from './answers.ts'

const stage = await startStage(UNLIMITED)
const { browser, service, site, gateway, pages } = stage

const SITE_KEY = site.siteKey

/** The page's own script: its callbacks note in `calls` their names and what they got. */
const CALLS = `window.calls = []
const note = name => value => { window.calls.push([name, value]) }
const passed = note('passed'), expired = note('expired'), failed = note('failed'), loaded = note('loaded')
Object.assign(window, { note, passed, expired, failed, loaded })
`

/** Opens a page with the vendor's script and one form, under a policy that allows only the service. */
async function open(
  vendor: string,
  body: string,
  options: { script?: string; query?: string; path?: string } = {},
) {
  const { script = '', query = '', path = `/compat/${vendor}.js` } = options
  const host = gateway.origin()
  pages.add('/page.js', CALLS + script)
  pages.add(
    '/form',
    `<!doctype html><html lang="en"><head><title>A form</title><meta charset="utf-8"><script src="/page.js"></script>
<script src="${host}${path}${query}" async defer></script></head>
<body><form action="/received" method="post"><input name="name" value="Ada">${body}</form></body></html>`,
    {
      'Content-Security-Policy': `default-src 'none'; script-src 'self' ${host}; connect-src ${host}; frame-src ${host}; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'`,
    },
  )
  pages.forms.length = 0
  return visit(browser, `${pages.origin()}/form`, WITH_CLOCK)
}

/** Waits until the page says true. (Playwright's waitForFunction would need `unsafe-eval`.) */
const until = (page: Page, code: string) =>
  eventually(60_000, code, async () => ((await page.evaluate(code)) as boolean) || undefined)

const evaluate = <Value = unknown>(page: Page, code: string) => page.evaluate(code) as Promise<Value>
const callsOf = (page: Page, name: string) =>
  evaluate<string[]>(page, `calls.filter(([name]) => name === '${name}').map(([, value]) => value)`)

/** Waits for that many calls of a callback; returns the value of the last. */
async function called(page: Page, name: string, count = 1): Promise<string> {
  const values = await eventually(60_000, `${name} is called`, async () => {
    const values = await callsOf(page, name)
    return values.length >= count ? values : undefined
  })
  return values.at(-1)!
}

async function redeem(response: string, path = '/siteverify', secret = site.apiKey) {
  const body = new URLSearchParams({ secret, response })
  return (await new Client(service.url).siteverify(body, { path })).json
}

/** What the site's backend got: the vendor's field once, and no field of the widget's own. */
async function postedAs(...names: readonly string[]): Promise<string> {
  const fields = await posted(stage)
  assert.deepEqual([...fields.keys()], ['name', ...names])
  return fields.get(names[0]!)!
}

/** Waits until the widget asks for what a test holds. */
const untilVerifying = () =>
  eventually(60_000, 'it verifies', () => gateway.requests.at(-1) === 'POST /verify')

/** The element that the vendor's script puts a widget into. */
const container = (vendor: string, data = 'data-callback="passed"') =>
  `<div class="${vendor}" data-sitekey="${SITE_KEY}" ${data}></div>`
const SEND = '<button>Send</button>'
const APPENDED = "document.body.appendChild(document.createElement('div'))"

/** Turbo restores a page so, from a copy: all markup is there, no listener and no shadow tree. */
const RESTORE = 'document.body.replaceWith(document.body.cloneNode(true))'

const fieldOf = (page: Page, name: string) =>
  evaluate<string>(page, `document.querySelector('[name="${name}"]').value`)

test('Turnstile, implicit: callback by name, the field, and a form that the backend accepts', async () => {
  const widget = container('cf-turnstile', 'data-callback="passed" data-theme="light" data-action="login"')
  const { page, notes } = await open('turnstile', widget + SEND)
  const token = await called(page, 'passed')
  assert.equal(await fieldOf(page, 'cf-turnstile-response'), token)
  assert.equal(await evaluate(page, 'turnstile.getResponse()'), token)
  assert.equal(await evaluate(page, 'turnstile.isExpired()'), false)
  assert.equal(await page.locator('pow-gate').getAttribute('theme'), 'light')
  await evaluate(page, RESTORE)
  const second = await called(page, 'passed', 2)
  assert.equal(await fieldOf(page, 'cf-turnstile-response'), second)
  assert.equal(await evaluate(page, 'turnstile.getResponse()'), second)
  assertQuiet(notes)
  await page.click('text=Send')
  const response = await postedAs('cf-turnstile-response')
  const { success, action, cdata } = await redeem(response, '/turnstile/v0/siteverify')
  assert.deepEqual([success, action, cdata], [true, 'login', ''])
  assert.deepEqual((await redeem(response))['error-codes'], ['timeout-or-duplicate'])
})

test('Turnstile, explicit: onload, functions, reset, remove, a field of its own name, and a later token', async () => {
  const { page, notes } = await open('turnstile', '<div id="here" class="cf-turnstile"></div>', {
    query: '?render=explicit&onload=loaded',
    script: `window.draw = where => turnstile.render(where, { sitekey: '${SITE_KEY}', callback: passed, 'expired-callback': expired, 'response-field-name': 'answer' })`,
  })
  await called(page, 'loaded')
  assert.equal(await page.locator('pow-gate').count(), 0)
  assert.equal(await evaluate(page, "turnstile.render('#nowhere', {})"), undefined)
  const id = await evaluate<string>(page, "draw('#here')")
  assert.equal(await evaluate(page, "draw('#here')"), id, 'one widget a container')
  const first = await called(page, 'passed')
  assert.equal(await fieldOf(page, 'answer'), first)
  const afterReset = `[turnstile.reset('${id}'), turnstile.getResponse('${id}'), document.getElementsByName('answer')[0].value]`
  assert.deepEqual(await evaluate(page, afterReset), [undefined, undefined, ''])
  const second = await called(page, 'passed', 2)
  assert.notEqual(second, first)
  await page.clock.fastForward(RENEWED_MS)
  const third = await called(page, 'passed', 3)
  assert.equal(await fieldOf(page, 'answer'), third, 'renewed before it expires')
  await evaluate(page, `turnstile.render(${APPENDED}, { sitekey: '${SITE_KEY}', callback: note('other') })`)
  const other = await called(page, 'other')
  assert.equal(await evaluate(page, 'turnstile.getResponse()'), other, 'the last widget is the default')
  await evaluate(page, "turnstile.remove('#here')")
  assert.equal(await page.locator('pow-gate').count(), 1)
  await page.clock.fastForward(EXPIRED_MS)
  await called(page, 'other', 2)
  assert.deepEqual(await callsOf(page, 'expired'), [], 'nothing more of the removed widget')
  assert.equal((await callsOf(page, 'passed')).length, 3)
  assert.deepEqual(notes.violations, [])
})

test('Turnstile, execution on demand: nothing before execute(), expiry, and the form is not held back', async () => {
  const callbacks = 'data-callback="passed" data-expired-callback="expired"'
  const widget = container('cf-turnstile', `data-execution="execute" ${callbacks}`)
  const script = "window.ready = () => turnstile.ready(note('ready'))"
  const { page, notes } = await open('turnstile', widget + SEND, { script })
  await until(page, 'window.turnstile !== undefined')
  await evaluate(page, 'ready()')
  await called(page, 'ready')
  assert.equal(await evaluate(page, 'document.forms[0].checkValidity()'), true)
  assert.deepEqual(await callsOf(page, 'passed'), [])
  const wrong = "turnstile.execute('.cf-turnstile', { action: 'early', cData: '!' })"
  await evaluate(page, `(() => { try { ${wrong} } catch {} })()`)
  assert.equal(await page.locator('pow-gate').getAttribute('action'), null, 'nothing of a wrong call is set')
  await evaluate(page, "turnstile.execute('.cf-turnstile', { action: 'late', cData: 'basket-17' })")
  const token = await called(page, 'passed')
  const { action, cdata } = await redeem(token)
  assert.deepEqual([action, cdata], ['late', 'basket-17'])
  assert.equal(await fieldOf(page, 'cf-turnstile-response'), token)
  await page.clock.fastForward(EXPIRED_MS)
  assert.equal(await called(page, 'expired'), token)
  assert.equal(await evaluate(page, 'turnstile.isExpired()'), true)
  assert.equal(await fieldOf(page, 'cf-turnstile-response'), '')
  assertQuiet(notes)
})

test('Turnstile, execute() with another action: a Send that waits, and a widget that is verified, get a token of it', async () => {
  const release = gateway.hold('/verify')
  const { page } = await open('turnstile', container('cf-turnstile') + SEND)
  await untilVerifying()
  await page.click('text=Send')
  const execute = (action: string) =>
    evaluate(page, `turnstile.execute('.cf-turnstile', { action: '${action}' })`)
  await execute('late')
  release()
  assert.equal((await redeem(await postedAs('cf-turnstile-response'))).action, 'late')
  await page.waitForURL('**/received') // the backend has the form before the page shows its answer
  await page.goBack()
  await called(page, 'passed')
  await execute('later')
  assert.equal((await redeem(await called(page, 'passed', 2))).action, 'later')
})

test('markup calls functions of the page by name, bound ones too, and none of the browser', async () => {
  const widgets = ['alert', 'bound']
    .map(name => container('cf-turnstile', `data-callback="${name}"`))
    .join('')
  // A function that settles a promise shows no code, as the browser's own do, but is the page's.
  const script = `window.bound = note('bound').bind(null)
window.settled = new Promise(resolve => { window.settle = resolve })`
  const { page } = await open('turnstile', widgets, { query: '?onload=settle', script })
  const dialogs: string[] = []
  page.on('dialog', dialog => {
    dialogs.push(dialog.type())
    void dialog.dismiss()
  })
  await called(page, 'bound')
  await page.evaluate('window.settled')
  await until(page, "[...document.querySelectorAll('pow-gate')].every(({ state }) => state === 'verified')")
  assert.deepEqual(dialogs, [])
})

test('an error calls error-callback; what cannot be mapped is warned of once', async () => {
  const warnings: string[] = []
  const { page } = await open('turnstile', '', { query: '?render=explicit&onload=loaded' })
  page.on('console', message => message.type() === 'warning' && warnings.push(message.text()))
  await called(page, 'loaded')
  const render = `turnstile.render(${APPENDED},
    { sitekey: 'site_0000000000000000000000', size: 'compact', type: 'x', theme: 'auto', 'error-callback': failed })`
  for (let count = 0; count < 2; count++) await evaluate(page, render)
  assert.equal(await called(page, 'failed', 2), 'site-unknown')
  assert.deepEqual(warnings.map(text => /"\w+"/.exec(text)?.[0]).sort(), ['"size"', '"type"'])
})

test('an action or cData that Turnstile documents as wrong throws; other containers are rendered', async () => {
  const wrong = container('cf-turnstile', 'data-action="log in"')
  const { page } = await open('turnstile', wrong + container('cf-turnstile'))
  await called(page, 'passed')
  assert.equal(await page.locator('pow-gate').count(), 1)
  for (const wrong of [`action: 'a/b'`, `action: '${'a'.repeat(33)}'`, `cData: '${'a'.repeat(256)}'`]) {
    const code = `(() => { try { return turnstile.render(document.body, { sitekey: '${SITE_KEY}', ${wrong} }) } catch ({ message }) { return message } })()`
    assert.match(await evaluate(page, code), /^powgate: "(action|cdata)" must match/)
  }
})

test('hCaptcha, implicit: both fields, and a page that keeps the token hears of its renewal', async () => {
  const widget = container('h-captcha', 'data-callback="passed" data-expired-callback="expired"')
  const { page, notes } = await open('hcaptcha', widget + SEND, { query: '?hl=de' })
  const first = await called(page, 'passed')
  assert.equal(await evaluate(page, 'hcaptcha.getResponse()'), first)
  assert.equal(await evaluate(page, 'grecaptcha.getResponse()'), first)
  assert.notEqual(await evaluate(page, 'hcaptcha.getRespKey()'), '')
  await page.clock.fastForward(RENEWED_MS)
  const second = await called(page, 'passed', 2)
  assert.deepEqual(await evaluate(page, 'calls'), [
    ['passed', first],
    ['expired', first],
    ['passed', second],
  ])
  assert.equal(await evaluate(page, 'hcaptcha.getResponse()'), second)
  assertQuiet(notes)
  await page.click('text=Send')
  const response = await postedAs('h-captcha-response', 'g-recaptcha-response')
  assert.equal((await redeem(response)).success, true)
})

test('hCaptcha, invisible: execute with a promise and without, each with a new token; errors reject', async () => {
  const { page, notes } = await open('hcaptcha', '<div id="here"></div>', {
    query: '?render=explicit&onload=loaded&recaptchacompat=off',
  })
  await called(page, 'loaded')
  assert.equal(await evaluate(page, 'typeof grecaptcha'), 'undefined')
  const options = `{ sitekey: '${SITE_KEY}', size: 'invisible', callback: passed }`
  await evaluate(page, `window.id = hcaptcha.render('here', ${options})`)
  const execute = (call: string) => evaluate<Record<string, string>>(page, call)
  const { response, key } = await execute('hcaptcha.execute(id, { async: true })')
  assert.equal(key, await evaluate(page, 'id'))
  assert.equal(response, await called(page, 'passed'))
  assert.equal(await fieldOf(page, 'h-captcha-response'), response)
  assert.equal(await evaluate(page, 'hcaptcha.execute(id, null)'), undefined)
  const second = await called(page, 'passed', 2)
  const third = await execute('hcaptcha.execute({ async: true })')
  assert.equal(new Set([response, second, third.response]).size, 3)
  assertQuiet(notes)
  await evaluate(page, 'hcaptcha.remove(id)')
  const refused = await evaluate(page, 'hcaptcha.execute(id, { async: true }).catch(code => code)')
  assert.equal(refused, 'missing-captcha')
})

test('hCaptcha, a button: a widget that was removed hears no more clicks, so another calls back once, and none sends the form', async () => {
  const { page } = await open('hcaptcha', '<button id="here">Send</button>', {
    query: '?render=explicit&onload=loaded',
    script: `window.draw = () => hcaptcha.render('here', { sitekey: '${SITE_KEY}', callback: passed })`,
  })
  await called(page, 'loaded')
  for (const code of ['draw()', 'hcaptcha.remove()', 'draw()']) await evaluate(page, code)
  await page.click('text=Send')
  await called(page, 'passed')
  await page.waitForTimeout(300)
  assert.equal((await callsOf(page, 'passed')).length, 1)
  await evaluate(page, 'hcaptcha.remove()')
  await page.click('text=Send')
  await postedAs()
})

test('a page that resets at each error, or at each token, starts no endless round', async () => {
  const script = `window.resetAt = (name, sitekey) => {
  const id = hcaptcha.render(${APPENDED}, { sitekey, [name]: value => { note(name)(value); hcaptcha.reset(id) } })
}`
  const { page } = await open('hcaptcha', '', { query: '?render=explicit&onload=loaded', script })
  await called(page, 'loaded')
  const wrongKeys = ['10000000-ffff-ffff-ffff-000000000001', 'site_0000000000000000000000'] // hCaptcha's test key, and an unknown one
  for (const key of wrongKeys) await evaluate(page, `resetAt('error-callback', '${key}')`)
  await called(page, 'error-callback', wrongKeys.length)
  await evaluate(page, `resetAt('callback', '${SITE_KEY}')`)
  await called(page, 'callback')
  await page.waitForTimeout(1000)
  assert.equal((await callsOf(page, 'error-callback')).length, wrongKeys.length)
  assert.equal((await callsOf(page, 'callback')).length, 1)
  await page.click('input') // the widget that was reset at its token waits until somebody uses the page
  await called(page, 'callback', 2)
})

test('a page whose expired-callback throws hears of the next token', async () => {
  const callbacks = "callback: passed, 'expired-callback': () => { throw 'wrong' }"
  const { page } = await open('hcaptcha', '', { query: '?render=explicit&onload=loaded' })
  await called(page, 'loaded')
  await evaluate(page, `void hcaptcha.render(${APPENDED}, { sitekey: '${SITE_KEY}', ${callbacks} })`)
  await called(page, 'passed')
  await page.clock.fastForward(RENEWED_MS)
  await called(page, 'passed', 2)
})

test('hCaptcha in place of reCAPTCHA: its class, the script twice, a container emptied and drawn again', async () => {
  const query = '?onload=loaded'
  const again = `<script src="${gateway.origin()}/compat/hcaptcha.js${query}" async defer></script>`
  const { page, notes } = await open('hcaptcha', container('g-recaptcha') + again, { query })
  await called(page, 'loaded', 2)
  const first = await called(page, 'passed')
  assert.equal(await page.locator('pow-gate').count(), 1)
  assert.equal(await evaluate(page, "hcaptcha.getResponse('')"), first)
  await evaluate(page, "document.querySelector('.g-recaptcha').replaceChildren()")
  await page.clock.fastForward(RENEWED_MS) // a widget that went on would renew its token now
  // Null counts as left out, so the key is that of the container's attribute.
  await evaluate(page, "hcaptcha.render(document.querySelector('.g-recaptcha'), { sitekey: null })")
  assert.equal(await called(page, 'passed', 2), await evaluate(page, 'hcaptcha.getResponse()'))
  assert.equal(await page.locator('pow-gate').count(), 1)
  assertQuiet(notes)
})

test('reCAPTCHA v2: a checkbox by class, one by render(), numbers as ids', async () => {
  const { page, notes } = await open('recaptcha', container('g-recaptcha') + SEND, {
    query: '?onload=loaded',
  })
  await called(page, 'loaded')
  const token = await called(page, 'passed')
  assert.equal(await evaluate(page, "document.getElementById('g-recaptcha-response').value"), token)
  const render = `grecaptcha.render(${APPENDED}, { sitekey: '${SITE_KEY}', callback: note('other') })`
  assert.equal(await evaluate(page, render), 1)
  assert.equal(await called(page, 'other'), await evaluate(page, 'grecaptcha.getResponse(1)'))
  assert.equal(await evaluate(page, '(grecaptcha.reset(1), grecaptcha.getResponse(1))'), '')
  assertQuiet(notes)
  await page.click('text=Send')
  assert.equal((await redeem(await postedAs('g-recaptcha-response'))).success, true)
})

test('reCAPTCHA v2, invisible: a button of the class verifies, then its callback sends the form', async () => {
  const button = `<button class="g-recaptcha" data-sitekey="${SITE_KEY}" data-callback="send">Send</button>`
  const script = 'window.send = () => document.forms[0].submit()'
  const { page, notes } = await open('recaptcha', `${button}<i></i>`, { script })
  await page.locator('pow-gate').waitFor({ state: 'attached' })
  await evaluate(page, "document.querySelector('button').after(document.querySelector('i'))") // between it and its widget
  await evaluate(page, RESTORE)
  assertQuiet(notes)
  await page.click('text=Send')
  assert.equal((await redeem(await postedAs('g-recaptcha-response'))).success, true)
})

test('a container that is written anew beside a hint gets a widget of its own; one that is away for a while keeps its widget', async () => {
  const { page } = await open('recaptcha', container('g-recaptcha') + container('g-recaptcha', 'id="other"'))
  await called(page, 'passed')
  // As a framework does: the same markup, which is a copy of the widget's box, and a hint <i>. The other container is away meanwhile.
  const writeAnew = `const container = document.querySelector('.g-recaptcha')
window.other = document.getElementById('other')
other.remove()
container.replaceChildren(...container.cloneNode(true).childNodes, document.createElement('i'))`
  await evaluate(page, writeAnew)
  const token = await called(page, 'passed', 2)
  assert.equal(await fieldOf(page, 'g-recaptcha-response'), token)
  await evaluate(page, 'document.forms[0].append(other)')
  assert.equal(await page.locator('pow-gate').count(), 2)
})

test('reCAPTCHA v3, rendered without a container: no box, and a token of its own for each execute()', async () => {
  const { page } = await open('recaptcha', '', { query: '?render=explicit&onload=loaded' })
  await called(page, 'loaded')
  const release = gateway.hold('/challenge')
  await evaluate(page, `window.id = grecaptcha.render({ sitekey: '${SITE_KEY}' })`)
  await page.waitForTimeout(300)
  assert.equal(await page.locator('pow-gate .box').isVisible(), false)
  release()
  const all = `Promise.all(['a', 'a', 'b'].map(action => grecaptcha.execute(id, { action })))`
  const tokens = [...(await evaluate<string[]>(page, all)), ...(await evaluate<string[]>(page, all))]
  assert.equal(new Set(tokens).size, 6)
})

test('reCAPTCHA v3: functions that came early, and a token of its own for each execute()', async () => {
  const { page, notes } = await open('recaptcha', '', {
    query: `?render=${SITE_KEY}`,
    script: "window.___grecaptcha_cfg = { fns: [note('early')] }",
  })
  await called(page, 'early')
  const execute = `grecaptcha.execute('${SITE_KEY}', { action: 'login' })`
  const enterprise = `grecaptcha.enterprise.execute('${SITE_KEY}', null)`
  const tokens = await evaluate<string[]>(page, `Promise.all([${execute}, ${enterprise}])`)
  assert.equal(new Set(tokens).size, 2)
  for (const [index, action] of ['login', ''].entries()) {
    const answer = await redeem(tokens[index]!)
    assert.deepEqual([answer.success, answer.action], [true, action], 'version 3 always has an action')
  }
  assertQuiet(notes)
  const wrong = `grecaptcha.execute('${SITE_KEY}', { action: 'log-in' }).catch(error => error.message)`
  assert.match(await evaluate(page, wrong), /^powgate: "action" must match/)
  await evaluate(page, "document.body.style.height = '3000px'")
  gateway.fail({ path: '/challenge', answer: REFUSED })
  assert.equal(await evaluate(page, `${enterprise}.catch(({ code }) => code)`), 'site-inactive')
  const corner = page.locator('pow-gate .box')
  const { y, height } = (await corner.boundingBox())!
  assert.equal(y + height, page.viewportSize()!.height, 'a failure is in view')
  const release = gateway.hold('/verify')
  const gate = "document.querySelector('html > div > *').shadowRoot.querySelector('pow-gate')" // in the corner
  await evaluate(page, `void ${gate}.execute()`) // as by "Try again"
  await untilVerifying()
  await evaluate(page, `void (window.next = grecaptcha.execute('${SITE_KEY}', { action: 'cart/add' }))`)
  release()
  const next = await evaluate<string>(page, 'window.next')
  assert.equal((await redeem(next)).action, 'cart/add')
  assert.equal(await corner.isVisible(), false)
  await page.clock.fastForward(EXPIRED_MS)
  await page.waitForTimeout(200)
  assert.equal(await corner.isVisible(), false, 'nothing asks the visitor to verify again')
})

const VENDORS = [
  ['/turnstile/v0/api.js', 'cf-turnstile', 'turnstile', '/turnstile/v0/siteverify'],
  ['/1/api.js', 'h-captcha', 'hcaptcha', '/siteverify'],
  ['/recaptcha/api.js', 'g-recaptcha', 'grecaptcha', '/recaptcha/api/siteverify'],
  ['/recaptcha/enterprise.js', 'g-recaptcha', 'grecaptcha.enterprise', '/recaptcha/api/siteverify'],
] as const

const hashwxSite = await service.createSite({ puzzle: 'hashwx', difficulty: ALWAYS_EASY })

for (const [path, vendor, name, verifyPath] of VENDORS)
  test(`${path}: a page of which only the host and the key were changed, of a site of HashWX`, async () => {
    const body = container(vendor).replace(SITE_KEY, hashwxSite.siteKey)
    gateway.requests.length = 0 // this `open` leaves those of earlier tests
    const { page, notes } = await open('', body, { path, query: '?onload=loaded' })
    await called(page, 'loaded')
    const token = await called(page, 'passed')
    assert.equal(token, await evaluate(page, `${name}.getResponse()`))
    assert.equal((await redeem(token, verifyPath, hashwxSite.apiKey)).success, true)
    assert.ok(gateway.requests.some(request => /\/hashwx\./.test(request)))
    assertQuiet(notes)
  })

for (const [name, library] of Object.entries(OLD_LIBRARIES))
  test(`a page with ${name}.js: the scripts of all three vendors, and their field is sent once`, async () => {
    pages.add('/library.js', readFileSync(library))
    for (const [path, vendor] of VENDORS.slice(0, 3)) {
      const field = `${vendor}-response`
      pages.add(
        '/form',
        `<!doctype html><html lang="en"><head><title>A form</title><script src="/library.js"></script>
<script src="${gateway.origin()}${path}" async defer></script></head><body>
<form action="/received" method="post"><input name="name" value="Ada">${container(vendor, '')}${SEND}</form></body></html>`,
      )
      pages.forms.length = 0
      const { page, notes } = await visit(browser, `${pages.origin()}/form`)
      await until(page, `document.getElementsByName('${field}')[0]?.value ? true : false`)
      await page.click('text=Send')
      const fields = await posted(stage)
      assert.equal(fields.getAll(field).length, 1)
      assert.equal((await redeem(fields.get(field)!)).success, true, path)
      assertQuiet(notes)
    }
  })
