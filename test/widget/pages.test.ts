/**
 * The widget in pages that others wrote: fields that hide members of the form and the document, scripts that replace what
 * browsers have, forms that scripts send, elements that are moved, and mistakes that the console names.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { documentedReads, readsOf, WATCH_READS } from '../harness/device-reads.ts'
import { eventually } from '../harness/eventually.ts'
import { OLD_LIBRARIES } from '../harness/old-libraries.ts'
import { UNLIMITED } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import {
  execute,
  GATE,
  inState,
  type OpenOptions,
  openInDialog,
  posted,
  RENEWED_MS,
  scriptTag,
  startStage,
  untilState,
  VERIFIED,
  visit,
  WITH_CLOCK,
} from '../harness/widget.ts'
import { away } from './answers.ts'

const stage = await startStage(UNLIMITED)
const { browser, service, site, gateway, pages } = stage
const KEY = `site-key="${site.siteKey}"`
pages.add('/empty', '<!doctype html><title>Empty</title>')
pages.add('/load.js', readFileSync('client/page/load.js'))
const CLICK_SEND = "document.querySelector('form[action] > button').click()"

/** As in form.ts: for so long a token that was sent is not sent again, by the browser and where a script handles the submission. */
const RESENT_MS = 2000
const HANDLED_MS = 700

async function open(attributes: string, options: OpenOptions = {}) {
  /** Codes of what the widget says on the console. */
  const advice: string[] = []
  const prepare = async (page: Page) =>
    page.on('console', message => {
      const code = /^pow-gate: .*\(([a-z-]+)\)/.exec(message.text())?.[1]
      if (code !== undefined) advice.push(code)
    })
  const opened = await stage.open(attributes, { visit: { prepare }, ...options })
  await opened.page.locator('pow-gate:defined').first().waitFor({ state: 'attached' })
  return { ...opened, advice }
}

/** Opens a page with these tags, and tells of its console: text and kind of each line. */
async function consoleOf(body: string) {
  const lines: { text: string; type: string }[] = []
  pages.add('/form', `<!doctype html><html lang="en"><title>A form</title><body>${body}${scriptTag(gateway)}`)
  const { page, notes } = await visit(browser, 'about:blank')
  page.on('console', message => lines.push({ text: message.text(), type: message.type() }))
  await page.goto(`${pages.origin()}/form`)
  return { page, notes, lines }
}

/** The fields that the site's backend got: the token once. */
async function received(): Promise<URLSearchParams> {
  const fields = await posted(stage)
  assert.equal(fields.getAll('powgate-token').length, 1)
  return fields
}

/** Tags with these names: in forms and documents, an element's name hides the member of that name. */
const named = (names: readonly string[], start: string, end = '') =>
  names.map(name => `${start} name="${name}">${end}`).join('')

const FORM_MEMBERS = words(
  'closest elements requestSubmit submit form contains getClientRects addEventListener getAttribute',
  'lang parentNode name hidden type',
)
const HIDDEN_BY_IMAGES = words('baseURI documentElement activeElement createElement addEventListener forms')
const HIDDEN_BY_FORMS = words('hidden querySelectorAll createElementNS body removeEventListener')
/** Parts of a page that hide or replace what browsers have. */
const OBSTACLES: readonly [about: string, OpenOptions][] = [
  ['fields named like members of the form', { fields: named(FORM_MEMBERS, '<input type="hidden"') }],
  [
    'images and forms named like members of the document',
    { more: named(HIDDEN_BY_IMAGES, '<img alt=""') + named(HIDDEN_BY_FORMS, '<form', '</form>') },
  ],
  ...Object.entries({
    'variables of the page in place of performance and screen': 'var performance = 1, screen = null',
    'MooTools 1.3: an Event of its own': 'Event = function () { throw new Error("not a browser event") }',
    'MooTools 1.6: Array.from makes a list of anything': 'Array.from = item => item == null ? [] : [item]',
    'an old polyfill: promises without finally': 'delete Promise.prototype.finally',
    'a script that forbids attachInternals':
      'HTMLElement.prototype.attachInternals = () => { throw new Error("not here") }',
  }).map(([about, code]): [string, OpenOptions] => [about, { more: `<script>${code}</script>` }]),
  ...Object.entries(OLD_LIBRARIES).map(([name, path]): [string, OpenOptions] => {
    pages.add(`/${name}.js`, readFileSync(path))
    return [`the library ${name}`, { more: `<script src="/${name}.js"></script>` }]
  }),
]
for (const [about, parts] of OBSTACLES)
  for (const attributes of ['auto="submit"', 'auto="submit" solver="page"'])
    test(`${about}, ${attributes}: sent with a token, no exception`, async () => {
      const { page, notes } = await open(attributes, parts)
      await page.evaluate(CLICK_SEND)
      await received()
      assert.deepEqual(notes.pageErrors, [])
    })

test('a Worker that says nothing, where the page allows no frame: solved in the page', async () => {
  const more = '<script>Worker = class { postMessage() {} terminate() {} }</script>'
  await inState('verified', open('', { more, policy: "frame-src 'none'" }))
})

test('the token is a field in the page too, once in FormData, gone with the token, and none of a copy is left', async () => {
  const { page } = await inState('verified', open(''))
  const state = `(() => {
    const [form] = document.forms
    const fields = [...form.elements].filter(({ name, localName }) => name === 'powgate-token' && localName === 'input')
    return { fields: fields.map(({ value }) => value), data: new FormData(form).getAll('powgate-token'), token: ${GATE}.token }
  })()`
  const { fields, data, token } = (await page.evaluate(state)) as Record<string, unknown>
  assert.deepEqual([fields, data], [[token], [token]])
  // Libraries do what follows that replace parts of a page, or keep a copy of it.
  await page.evaluate(`${GATE}.innerHTML = ''`)
  assert.deepEqual((await page.evaluate(state)) as object, { fields: [], data: [token], token })
  await page.evaluate(`document.forms[0].append(${GATE})`)
  await page.evaluate('document.forms[0].replaceWith(document.forms[0].cloneNode(true))')
  await untilState(page, 'verified')
  const copied = (await page.evaluate(state)) as Record<string, unknown>
  assert.deepEqual([copied.fields, copied.data], [[copied.token], [copied.token]])
  assert.notEqual(copied.token, token)
  await page.evaluate(`${GATE}.disabled = true`)
  assert.deepEqual(((await page.evaluate(state)) as Record<string, unknown>).data, [])
  await page.evaluate(`${GATE}.disabled = false; ${GATE}.auto = 'off'; ${GATE}.reset()`)
  assert.deepEqual(await page.evaluate(state), { fields: [], data: [], token: null })
})

for (const mode of ['open', 'closed'])
  test(`a field with a shadow tree of its own, ${mode}, in another one: typing starts the verification`, async () => {
    const more = `<script>{
customElements.define('x-input', class extends HTMLElement {
  constructor() { super(); this.root = this.attachShadow({ mode: '${mode}' }); this.root.innerHTML = '<input>' }
})
customElements.define('x-field', class extends HTMLElement {
  constructor() { super(); this.root = this.attachShadow({ mode: '${mode}' }); this.root.innerHTML = '<x-input></x-input>' }
})
}</script>`
    const { page } = await open('auto="focus"', { fields: '<x-field></x-field>', more })
    assert.equal(await page.evaluate(`${GATE}.state`), 'idle')
    await page.evaluate(`document.querySelector('x-field').root.firstChild.root.firstChild
      .dispatchEvent(new InputEvent('input', { bubbles: true, composed: true }))`)
    await untilState(page, 'verified')
  })

const CANCEL = '<button id="out" formmethod="dialog">Cancel</button>'
const CLOSE = '<button id="out">Close</button>'
for (const { about, method, form, fields } of [
  { about: 'Cancel with formmethod="dialog"', method: 'post', form: '', fields: CANCEL },
  { about: 'a form with method="dialog"', method: 'dialog', form: '', fields: CLOSE },
  { about: 'the same with novalidate', method: 'dialog', form: 'novalidate', fields: CLOSE },
])
  test(`${about}, while the service is away: the dialog closes at once`, async () => {
    const fault = { path: '/challenge', isDropped: true, times: 9 }
    const { page } = await open('auto="submit"', { form, fields, fault })
    await openInDialog(page)
    await page.evaluate(`document.forms[0].method = '${method}'`)
    await page.click('#out')
    assert.equal(await page.evaluate("document.querySelector('dialog').open"), false)
  })

test('an address with a slash at its end, so two before widget.js: loads, and verifies', async () => {
  await inState('verified', open('', { script: `<script src="${gateway.origin()}//widget.js"></script>` }))
})

test('expiresAt is by the clock of the page, where that is a day off', async () => {
  const more = '<script>{ const { now } = Date; Date.now = () => now() - 86_400_000 }</script>'
  const { page } = await inState('verified', open('auto="load"', { more }))
  const left = Number(await page.evaluate(`${GATE}.expiresAt - Date.now()`))
  assert.ok(left > 0 && left <= 300_000, String(left))
})

for (const auto of ['load', 'focus', 'submit'])
  for (const form of ['', 'novalidate'])
    test(`requestSubmit() by the page, auto="${auto}" ${form}: verified, then sent with its button`, async () => {
      const fields = '<button name="by" value="script" hidden></button>'
      const { page } = await open(`auto="${auto}"`, { fields, form })
      await page.evaluate(`document.forms[0].requestSubmit(document.forms[0].elements.by)`)
      assert.equal((await received()).get('by'), 'script')
    })

test('reportValidity() by the page: verified, so that the next press sends the form', async () => {
  const { page } = await open('auto="submit"')
  assert.equal(await page.evaluate('document.forms[0].reportValidity()'), false)
  await untilState(page, 'verified')
  assert.equal(await page.evaluate('document.forms[0].reportValidity()'), true)
})

test('a button that the page disables when it is pressed: its value is sent', async () => {
  const fields =
    '<button name="by" value="pay" onclick="setTimeout(() => { this.disabled = true })">Pay</button>'
  const { page } = await open('auto="submit"', { fields })
  await page.click('text=Pay')
  assert.equal((await received()).get('by'), 'pay')
})

test('two buttons, pressed while Send waits: the form is sent with the last one', async () => {
  const fields =
    '<button name="by" value="draft">Save</button><button name="by" value="publish">Publish</button>'
  const release = gateway.hold('/challenge')
  const { page } = await open('auto="submit"', { fields })
  await page.click('text=Save')
  await page.click('text=Publish')
  release()
  assert.equal((await received()).get('by'), 'publish')
})

test('a double click on a verified form: sent once, and two seconds later again, with another token', async () => {
  const { page } = await inState('verified', open('', { form: 'target="elsewhere"' }))
  // One second later by the page's own timers, which keep their order on a busy machine.
  await page.evaluate(`document.forms[0].addEventListener('submit', () => setTimeout(() => {
    ${CLICK_SEND}
    window.hasClicked = true
  }, 1000), { once: true })`)
  await page.dblclick('text=Send')
  await received()
  await eventually(60_000, 'the third click', () => page.evaluate('window.hasClicked'))
  await page.evaluate(`new Promise(resolve => setTimeout(resolve, ${RESENT_MS + 500}))`)
  assert.equal(pages.forms.length, 1)
  await page.click('text=Send')
  await eventually(60_000, 'the second form', () => pages.forms.length === 2)
  assert.equal(new Set(pages.forms.map(fields => fields.get('powgate-token'))).size, 2)
})

test('a double click where a script sends the form: one call; after a mistake of the visitor Send works again soon', async () => {
  const { page } = await inState('verified', open(''))
  await page.evaluate(`window.calls = 0
document.forms[0].addEventListener('submit', event => { event.preventDefault(); calls++ })`)
  await page.dblclick('text=Send')
  assert.equal(await page.evaluate('calls'), 1)
  await page.evaluate(`new Promise(resolve => setTimeout(resolve, ${HANDLED_MS + 300}))`)
  await page.click('text=Send')
  assert.equal(await page.evaluate('calls'), 2)
  await page.evaluate(`${GATE}.reset()`)
  await page.click('text=Send')
  await eventually(60_000, 'a new token is sent at once', async () => (await page.evaluate('calls')) === 3)
})

/** What is pressed twice: a button, or keys in a field. */
const PRESSES: Readonly<Record<string, readonly [selector: string, keys?: string]>> = {
  'a button outside of the form': ['#outside'],
  'a button outside of the form that waits a moment': ['#late'],
  'Ctrl+Enter': ['textarea', 'Control+Enter'],
  'Enter in a form without a button': ['[name=name]', 'Enter'],
}
for (const [what, [selector, keys]] of Object.entries(PRESSES))
  test(`two presses where a script sends the form, ${what}: one call`, async () => {
    const { page } = await inState('verified', open('', { fields: '<textarea></textarea>' }))
    await page.evaluate(`window.calls = []
const [form] = document.forms
form.querySelector(':scope > button').remove()
form.insertAdjacentHTML('afterend', '<button id="outside" onclick="document.forms[0].requestSubmit()">Send</button><button id="late" onclick="setTimeout(() => outside.onclick())">Send</button>')
form.querySelector('textarea').addEventListener('keydown', event => event.ctrlKey && event.key === 'Enter' && form.requestSubmit())
form.addEventListener('submit', event => { event.preventDefault(); calls.push(event.timeStamp) })`)
    if (keys === undefined)
      await page.dblclick(selector, { delay: 100 }) // without it both presses may come before the late call
    else {
      await page.focus(selector)
      await Promise.all([keys, keys].map(both => page.keyboard.press(both))) // one after the other may take too long
    }
    const [first, second = Infinity] = (await page.evaluate('calls')) as [number, number?]
    assert.ok(second - first > HANDLED_MS, `only a slow machine's presses are two: ${second - first} ms`)
  })

const TWIN = `<pow-gate ${KEY} auto="load" name="twin"></pow-gate>`
for (const [again, fields = ''] of [
  ['form.requestSubmit()'],
  ['form.querySelector(":scope > button").click()', TWIN],
] as const)
  test(`a page prevents Send, checks, and goes on by ${again}: sent once, also after a double click`, async () => {
    const { page } = await inState('verified', open('', { form: 'target="elsewhere"', fields }))
    await untilState(page, 'verified', 'pow-gate:last-of-type')
    await page.evaluate(`document.forms[0].addEventListener('submit', event => {
  const form = event.target
  if (form.isChecked) return
  event.preventDefault()
  setTimeout(() => { form.isChecked = true; ${again} }, 200)
})`)
    await page.dblclick('text=Send')
    await received()
    await page.evaluate(`new Promise(resolve => setTimeout(resolve, ${HANDLED_MS + 300}))`)
    assert.equal(pages.forms.length, 1)
  })

test('a page prevents Send and asks outside of the form: Yes, pressed at once, sends it', async () => {
  const { page } = await inState('verified', open('', { form: 'target="elsewhere"' }))
  await page.evaluate(`document.forms[0].addEventListener('submit', event => {
  event.preventDefault()
  document.body.insertAdjacentHTML('beforeend', '<button id="yes">Yes</button>')
  yes.onclick = () => event.target.requestSubmit()
  yes.focus()
}, { once: true })`)
  await page.focus('text=Send')
  await Promise.all(['Enter', 'Enter'].map(key => page.keyboard.press(key)))
  await received()
})

const CHANGES = {
  'the element': `document.forms[0].prepend(${GATE})`,
  'its form': `document.body.prepend(document.forms[0])`,
  'the element, by moveBefore': `document.forms[0].moveBefore(${GATE}, document.forms[0].firstChild)`,
  'an attribute': `${GATE}.setAttribute('threads', '2')`,
}
for (const [what, change] of Object.entries(CHANGES))
  test(`moved or changed while Send waits: ${what}: sent all the same`, async () => {
    const release = gateway.hold('/challenge')
    const { page, notes } = await open('auto="submit"')
    await page.click('text=Send')
    await untilState(page, 'working')
    await page.evaluate(change)
    release()
    await received()
    assert.deepEqual(notes.pageErrors, [])
  })

test('the plugin for WordPress, loaded after `load`: its hooks are set once, also for a library that comes later still', async () => {
  const { page } = await visit(browser, `${pages.origin()}/empty`)
  // Gravity Forms is there from the start, and WooCommerce's jQuery comes with the first click, in place of an optimiser's function. The
  // second click must hook nothing.
  await page.evaluate(`window.hooked = []
const on = event => void hooked.push(event.match(/\\w+/)[0])
window.jQuery = () => {}
window.gform = { utils: { addAsyncFilter: on } }
window.onclick = () => (jQuery = Object.assign(() => ({ on }), { fn: {} }))`)
  await page.addScriptTag({ path: 'client/wordpress/powgate/assets/page.js' })
  assert.deepEqual(await page.evaluate('hooked'), ['gform'])
  await page.click('html', { clickCount: 2 })
  assert.deepEqual(await page.evaluate('hooked'), ['gform', 'checkout_error'])
})

test('the plugin for WordPress, where outages let pass: a good token stays, and a form that was refused gets its element back', async () => {
  const { page } = await inState('verified', open('data-away="pass"', { visit: WITH_CLOCK }))
  await page.addScriptTag({ path: 'client/wordpress/powgate/assets/page.js' })
  gateway.fail({ path: '/challenge', times: 100, answer: away(1000) })
  await page.clock.fastForward(RENEWED_MS)
  await page.waitForFunction(`${GATE}.error !== null && ${GATE}.token !== null`)
  // Without a token the plugin takes the element out, so that the form may pass. Contact Form 7's event, after a refusal, puts it back.
  await page.evaluate(`${GATE}.reset()`)
  await page.locator('pow-gate').waitFor({ state: 'detached' })
  gateway.recover()
  await page.evaluate(`document.forms[0].dispatchEvent(new Event('wpcf7submit', { bubbles: true }))`)
  await page.click('text=Send')
  await received()
})

test('client/page: a script that could not be loaded is loaded for the next element', async () => {
  const { page } = await visit(browser, `${pages.origin()}/empty`)
  const load = `import('/load.js').then(({ loadWidget }) => loadWidget('${gateway.origin()}'))`
  gateway.fail({ path: '/widget.js', answer: { status: 503 } })
  await page.evaluate(load)
  await page.waitForFunction('document.scripts.length === 0')
  await page.evaluate(load)
  await page.waitForFunction("customElements.get('pow-gate')")
})

test('compat/redirect.js: every address of the vendors’ scripts becomes ours', async () => {
  const { page } = await visit(browser, `${pages.origin()}/empty`)
  await page.addScriptTag({ url: `${gateway.origin()}/compat/redirect.js` })
  const google = words('www.google.com www.recaptcha.net recaptcha.net').map(host => `${host}/recaptcha`)
  const others = words('js.hcaptcha.com/1 hcaptcha.com/1 challenges.cloudflare.com/turnstile/v0')
  for (const folder of [...google, ...others]) {
    const script = `Object.assign(document.createElement('script'), { src: '//${folder}/api.js' })`
    const ours = `${gateway.origin()}/${folder.replace(/^.*?\//, '')}/api.js`
    assert.equal(await page.evaluate(`${script}.src`), ours)
  }
  const set = `s => (s.setAttribute('SRC', '//js.hcaptcha.com/1/api.js'), s.src)`
  const byAttribute = await page.evaluate(`(${set})(document.createElement('script'))`)
  assert.equal(byAttribute, `${gateway.origin()}/1/api.js`, 'attributes have no case')
})

test('the solver’s frame is in the shadow tree: no style sheet and no script of the page finds it', async () => {
  const more = `<style>html > iframe, iframe { display: block !important }</style><script>
window.found = []
new MutationObserver(() => found.push(...document.querySelectorAll('iframe'))).observe(document, { childList: true, subtree: true })
</script>`
  const { page } = await open('auto="off"', { more })
  await execute(page)
  assert.equal(await page.evaluate(`${VERIFIED}.then(({ mode }) => mode)`), 'frame')
  assert.equal(await page.evaluate('found.length'), 0)
  // An element that is in no document yet, where no frame loads, solves too.
  assert.match(String(await page.evaluate(`${GATE}.cloneNode().execute()`)), /^\d+\|/)
})

test('a cache that keeps every challenge: the second visitor is verified, and no two later addresses are equal', async () => {
  const kept = await fetch(`${service.url}/challenge`, { headers: { 'X-Site-Key': site.siteKey } })
  const body = (await kept.json()) as object
  const asked: string[] = []
  const fault = { path: '/challenge', answer: { status: 200, body } }
  // A page's first challenge is asked for at the plain address, where the cache answers; all others at addresses with a query. The second
  // visitor finds the cache's used, and asks again. Both ask once more after reset(), so there are five.
  for (let visitor = 0; visitor < 2; visitor++) {
    const { page } = await open('auto="off"', { fault, from: '127.0.0.1' }) // the address of that challenge
    page.on('request', request => request.url().includes('/challenge') && asked.push(request.url()))
    await page.evaluate(`${GATE}.execute()`)
    await page.evaluate(`(${GATE}.reset(), ${GATE}.execute())`)
  }
  assert.ok(asked.length >= 5, asked.join())
  const later = asked.filter(url => url.includes('?'))
  assert.equal(new Set(later).size, later.length)
  assert.equal(asked.length - later.length, 2, 'the first of each page')
})

test('properties for each attribute, also those set before the script was there', async () => {
  const early = "{ theme: 'dark', disabled: true, workerSrc: '/powgate-worker.js' }"
  const more = `<script>Object.assign(${GATE}, ${early})</script>`
  const { page } = await open('auto="off"', { more })
  const attributes = (...names: string[]) =>
    page.evaluate(`${JSON.stringify(names)}.map(name => ${GATE}.getAttribute(name))`)
  assert.deepEqual(await attributes('theme', 'disabled', 'worker-src'), ['dark', '', '/powgate-worker.js'])
  await page.evaluate(`Object.assign(${GATE}, { form: 'contact', disabled: false, threads: 2 })`)
  assert.deepEqual(await attributes('form', 'disabled', 'threads'), ['contact', null, '2'])
  const without = await page.evaluate(`customElements.get('pow-gate').observedAttributes
    .map(name => name.replace(/-./, ([, letter]) => letter.toUpperCase()))
    .filter(name => !Object.hasOwn(customElements.get('pow-gate').prototype, name))`)
  // `lang` is the browser's own, and by `name` libraries would send the element beside its field.
  assert.deepEqual(without, ['lang', 'name'])
  assert.equal(await page.evaluate(`${GATE}.matches(':state(idle)') && !${GATE}.hasAttribute('state')`), true)
})

test('an element without an end tag: the button is shown and works, and the console says it once', async () => {
  pages.forms.length = 0 // `consoleOf` leaves those of earlier tests
  const { page, lines } = await consoleOf(`<form action="/received" method="post">
<input name="name" value="Ada"><pow-gate ${KEY} auto="load" /><label>More <input name="more"></label><button>Send</button></form>`)
  await untilState(page, 'verified')
  await page.getByLabel('More').fill('x')
  await page.click('text=Send')
  await received()
  const warnings = lines.filter(({ type }) => type === 'warning')
  assert.equal(warnings.length, 1)
  assert.ok(warnings[0]!.text.includes('<pow-gate ...></pow-gate>'))
})

const WATCHING = `<script>${WATCH_READS}</script>`

for (const [what, touch] of [
  ['a focus', '.focus()'],
  ['a pointer', ".dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, composed: true }))"],
  ['a change, as by autofill', ".dispatchEvent(new Event('change', { bubbles: true }))"],
])
  test(`by default nothing is read and asked for before the first touch: ${what}`, async () => {
    const { page } = await open('auto="focus"', { more: WATCHING })
    await page.locator('pow-gate .text').filter({ hasText: 'Protected against bots' }).waitFor()
    await page.waitForTimeout(700) // a verification that began with the page would have asked by now
    assert.deepEqual(await readsOf(page), [])
    assert.equal(gateway.count('GET /challenge'), 0)
    await page.evaluate(`document.forms[0].elements.name${touch}`)
    await untilState(page, 'verified')
    const documented = documentedReads('flags').filter(name => name !== 'OffscreenCanvas') // read in a worker, out of sight
    assert.deepEqual(await readsOf(page), documented)
  })

test('of a page without a language only the browser’s languages are read before the first touch', async () => {
  const { page } = await open('auto="focus" lang=""', { more: WATCHING })
  await page.locator('pow-gate .text').filter({ hasText: 'Protected against bots' }).waitFor()
  assert.deepEqual(await readsOf(page), ['languages'])
})

test('autofocus is no touch; a key is, and a pointer on the element', async () => {
  for (const touch of ['key', 'pointer']) {
    const { page } = await open('auto="focus"', { edit: ['name="name"', 'name="name" autofocus'] })
    const isFocused = () => page.evaluate(`document.activeElement.name === 'name'`)
    await eventually(60_000, 'the field has the focus', isFocused)
    await page.waitForTimeout(500) // if the focus had been a touch, it would have asked by now
    assert.equal(gateway.count('GET /challenge'), 0)
    if (touch === 'key') await page.keyboard.press('x')
    else await page.locator('pow-gate').click()
    await untilState(page, 'verified')
  }
})

const SECOND = `<pow-gate ${KEY} auto="off"></pow-gate>`
const REPLACED = `{
  ${CLICK_SEND}
  setTimeout(() => document.forms[0].replaceWith(document.forms[0].cloneNode(true)), 300)
}`
const THANKS = `new Promise(resolve => {
  ${CLICK_SEND}
  document.forms[0].onsubmit = ({ target }) => resolve(target.replaceWith('Thank you'))
})`
const DATA = 'new FormData(document.forms[0])'
/** What a page does before there is a token, and the code of what the console then says, if anything. */
const ADVICE: readonly [about: string, attributes: string, OpenOptions, act: string, code?: string][] = [
  ['form.submit() before the token is there', '', {}, 'document.forms[0].submit()', 'no-token'],
  ['form data for a script’s own request', '', {}, DATA, 'no-token'],
  ['a button without a check', '', { fields: '<button formnovalidate id="draft">' }, 'draft.click()'],
  ['an element without a field', 'name=""', {}, DATA],
  ['two elements in a form', '', { fields: SECOND }, '', 'two-in-form'],
  ['two elements in two forms', '', { more: `<form>${SECOND}</form>` }, ''],
  ['a form that is replaced while Send waits', 'auto="submit"', {}, REPLACED, 'send-lost'],
  ['a form that is replaced when it is sent', 'auto="submit"', {}, THANKS],
  ['an endpoint with a path too many', `endpoint="${gateway.origin()}/challenge/"`, {}, '', 'endpoint-path'],
]
for (const [about, attributes, parts, act, code] of ADVICE)
  test(`${about}: the console says ${code ?? 'nothing'}`, async () => {
    const fault = { path: '/challenge', delayMs: 700 } // until then there is no token
    const { page, advice } = await open(`${attributes} auto="off"`, { ...parts, fault })
    await page.evaluate(act)
    if (code === undefined)
      await page.waitForTimeout(500) // in which it would have been said
    else await eventually(60_000, code, () => advice.length > 0)
    assert.deepEqual(advice, code === undefined ? [] : [code])
  })

test('a site key and an endpoint with spaces around, and an empty endpoint: verified', async () => {
  const siteKey = `\u00a0${site.siteKey} \n`
  for (const endpoint of [` ${gateway.origin()} `, ''])
    await inState('verified', open(`endpoint="${endpoint}"`, { siteKey }))
})

const outside = (attributes = '') => `<form></form><pow-gate ${KEY} ${attributes}></pow-gate>`
const gate = (attributes: string) => `<form><pow-gate ${attributes}></pow-gate></form>`
const endpoint = (address: string) => gate(`${KEY} endpoint="${address}"`)
const TEST_KEY = 'site-key="site_TestAlwaysPasses000000" auto="load"'
const MISTAKES: readonly [about: string, body: string, says: RegExp][] = [
  ['an endpoint without its scheme', endpoint('a.example.com'), /write https:\/\/a\.example\.com/],
  ['an endpoint with a port and no scheme', endpoint('localhost:8080'), /write https:\/\/localhost:8080/],
  ['an API key in the page', gate('site-key="sk_00000000_abcdefgh"'), /secret.*[Rr]evoke/],
  ['sitekey', gate('sitekey="x"'), /write site-key in place of sitekey/],
  ['data-sitekey', gate('data-sitekey="x"'), /write site-key in place of data-sitekey/],
  ['an element outside of every form', outside(), /outside of every form.*form="ID"/],
  ['a test key while off', gate(TEST_KEY), /POWGATE_TEST_KEYS=on/],
]
for (const [about, body, says] of MISTAKES)
  test(`the console names the mistake and the mend before anybody uses the form: ${about}`, async () => {
    const { lines } = await consoleOf(body)
    const telling = () => lines.filter(({ text }) => says.test(text))
    await eventually(60_000, `a line that matches ${says}`, () => telling().length > 0)
    assert.equal(telling().length, 1)
    assert.ok(!JSON.stringify(lines).includes('abcdefgh'), 'the secret itself')
  })
