/**
 * The widget in pages that others wrote: fields that hide members of the form and the document, scripts that replace what
 * browsers have, forms that scripts send, elements that are moved, and mistakes that the console names.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { documentedReads, readsOf, WATCH_READS } from '../harness/device-reads.ts'
import { eventually } from '../harness/eventually.ts'
import { UNLIMITED } from '../harness/service.ts'
import { formPage, GATE, startStage, untilState, visit } from '../harness/widget.ts'

const { browser, service, site, gateway, pages } = await startStage(UNLIMITED)
const SCRIPT = `<script src="${gateway.origin()}/widget.js"></script>`

interface Parts {
  readonly attributes?: string
  /** Stands in the form, before the button. */
  readonly fields?: string
  /** Stands before the widget's script. */
  readonly before?: string
  readonly form?: string
  readonly policy?: string
}

async function open({ attributes = '', fields = '', before = '', form = '', policy }: Parts) {
  pages.forms.length = gateway.requests.length = 0
  const html = formPage(`site-key="${site.siteKey}" ${attributes}`, { script: before + SCRIPT, form })
  const headers = policy === undefined ? {} : { 'Content-Security-Policy': policy }
  pages.add('/form', html.replace('<button>', `${fields}<button>`), headers)
  /** Codes of what the widget says on the console. */
  const advice: string[] = []
  const { page, notes } = await visit(browser, `${pages.origin()}/form`, {
    prepare: async page =>
      page.on('console', message => {
        const code = /^pow-gate: .*\(([a-z-]+)\)/.exec(message.text())?.[1]
        if (code !== undefined) advice.push(code)
      }),
  })
  await eventually(60_000, 'the element', () => page.evaluate(`!!document.querySelector('pow-gate:defined')`))
  return { page, notes, advice }
}

/** The fields that the site's backend got: the token once. */
async function posted(): Promise<URLSearchParams> {
  const fields = await eventually(60_000, 'the form arrives', () => pages.forms[0]?.fields)
  assert.equal(fields.getAll('powgate-token').length, 1)
  return fields
}

const named = (names: string) => names.split(' ').map(name => `<input type="hidden" name="${name}">`)
const HIDING: readonly [about: string, Parts][] = [
  [
    'fields named like members of the form',
    {
      fields: named(
        'closest elements requestSubmit submit form contains getClientRects addEventListener getAttribute lang parentNode name hidden type',
      ).join(''),
    },
  ],
  [
    'images and forms named like members of the document',
    {
      before: [
        ...'baseURI documentElement activeElement createElement addEventListener forms'
          .split(' ')
          .map(name => `<img name="${name}" alt="">`),
        ...'hidden querySelectorAll createElementNS body removeEventListener'
          .split(' ')
          .map(name => `<form name="${name}"></form>`),
      ].join(''),
    },
  ],
  [
    'variables of the page in place of performance and screen',
    { before: '<script>var performance = 1, screen = null</script>' },
  ],
  [
    'MooTools 1.3: an Event of its own',
    { before: '<script>window.Event = function () { throw new Error("not a browser event") }</script>' },
  ],
  [
    'a script that forbids attachInternals',
    {
      before:
        '<script>HTMLElement.prototype.attachInternals = () => { throw new Error("not here") }</script>',
    },
  ],
]
for (const [about, parts] of HIDING)
  for (const attributes of ['auto="submit"', 'auto="submit" solver="page"'])
    test(`${about}, ${attributes}: sent with a token, no exception`, async () => {
      const { page, notes } = await open({ attributes, ...parts })
      await page.evaluate(`document.querySelector('form[action] > button').click()`)
      await posted()
      assert.deepEqual(notes.pageErrors, [])
    })

for (const [about, before] of [
  ['says nothing', '<script>Worker = class { postMessage() {} terminate() {} }</script>'],
  ['does not exist', '<script>Worker = undefined</script>'],
] as const)
  test(`a Worker that ${about}, where the page allows no frame: solved in the page`, async () => {
    const { page } = await open({ before, policy: "frame-src 'none'" })
    await untilState(page, 'verified')
  })

test('the token is a field in the page too, once in FormData, gone with the token, and none of a copy is left', async () => {
  const { page } = await open({})
  await untilState(page, 'verified')
  const state = `(() => {
    const [form] = document.forms
    const fields = [...form.elements].filter(({ name, localName }) => name === 'powgate-token' && localName === 'input')
    return { fields: fields.map(({ value }) => value), data: new FormData(form).getAll('powgate-token'), token: ${GATE}.token }
  })()`
  const { fields, data, token } = (await page.evaluate(state)) as Record<string, unknown>
  assert.deepEqual([fields, data], [[token], [token]])
  // As libraries do that replace parts of a page, or keep a copy of it.
  await page.evaluate(`${GATE}.innerHTML = ''`)
  assert.deepEqual((await page.evaluate(state)) as object, { fields: [], data: [token], token })
  await page.evaluate(`document.forms[0].append(${GATE})`)
  await page.evaluate(`{
    const copy = document.forms[0].cloneNode(true)
    document.forms[0].replaceWith(copy)
  }`)
  await untilState(page, 'verified')
  const copied = (await page.evaluate(state)) as Record<string, unknown>
  assert.deepEqual([copied.fields, copied.data], [[copied.token], [copied.token]])
  assert.notEqual(copied.token, token)
  await page.evaluate(`${GATE}.disabled = true`)
  assert.deepEqual(((await page.evaluate(state)) as Record<string, unknown>).data, [])
  await page.evaluate(`${GATE}.disabled = false; ${GATE}.auto = 'off'; ${GATE}.reset()`)
  assert.deepEqual(await page.evaluate(state), { fields: [], data: [], token: null })
})

for (const auto of ['load', 'focus', 'submit'])
  for (const form of ['', 'novalidate'])
    test(`requestSubmit() by the page, auto="${auto}" ${form}: verified, then sent with its button`, async () => {
      const fields = '<button name="by" value="script" hidden></button>'
      const { page } = await open({ attributes: `auto="${auto}"`, fields, form })
      await page.evaluate(`document.forms[0].requestSubmit(document.forms[0].elements.by)`)
      assert.equal((await posted()).get('by'), 'script')
    })

test('reportValidity() by the page: verified, so that the next press sends the form', async () => {
  const { page } = await open({ attributes: 'auto="submit"' })
  assert.equal(await page.evaluate('document.forms[0].reportValidity()'), false)
  await untilState(page, 'verified')
  assert.equal(await page.evaluate('document.forms[0].reportValidity()'), true)
})

test('a button that the page disables when it is pressed: its value is sent', async () => {
  const { page } = await open({
    attributes: 'auto="submit"',
    fields: '<button name="by" value="pay" onclick="setTimeout(() => { this.disabled = true })">Pay</button>',
  })
  await page.click('text=Pay')
  assert.equal((await posted()).get('by'), 'pay')
})

test('two buttons, pressed while Send waits: the form is sent with the last one', async () => {
  gateway.fail({ path: '/challenge', delayMs: 700 })
  const { page } = await open({
    attributes: 'auto="submit"',
    fields: '<button name="by" value="draft">Save</button><button name="by" value="publish">Publish</button>',
  })
  await page.click('text=Save')
  await page.click('text=Publish')
  assert.equal((await posted()).get('by'), 'publish')
})

test('a double click on a verified form: sent once, and two seconds later again', async () => {
  const { page } = await open({ form: 'target="elsewhere"' })
  await untilState(page, 'verified')
  // One second later by the page's own timers, which keep their order on a busy machine.
  await page.evaluate(`document.forms[0].addEventListener('submit', () => setTimeout(() => {
    document.querySelector('form[action] > button').click()
    window.hasClicked = true
  }, 1000), { once: true })`)
  await page.dblclick('text=Send')
  await posted()
  await eventually(60_000, 'the third click', () => page.evaluate('window.hasClicked'))
  await page.evaluate('new Promise(resolve => setTimeout(resolve, 2500))')
  assert.equal(pages.forms.length, 1)
  await page.click('text=Send')
  await eventually(60_000, 'the second form', () => pages.forms.length === 2)
})

test('a double click where a script sends the form: one call; after a mistake of the visitor Send works again soon', async () => {
  const { page } = await open({})
  await untilState(page, 'verified')
  await page.evaluate(`window.calls = 0
document.forms[0].addEventListener('submit', event => { event.preventDefault(); calls++ })`)
  await page.dblclick('text=Send')
  assert.equal(await page.evaluate('calls'), 1)
  await page.evaluate('new Promise(resolve => setTimeout(resolve, 1000))')
  await page.click('text=Send')
  assert.equal(await page.evaluate('calls'), 2)
  await page.evaluate(`${GATE}.reset()`)
  await page.click('text=Send')
  await eventually(60_000, 'a new token is sent at once', async () => (await page.evaluate('calls')) === 3)
})

const MOVES = {
  'the element': `document.forms[0].prepend(${GATE})`,
  'its form': `document.body.prepend(document.forms[0])`,
  'the element, by moveBefore': `document.forms[0].moveBefore(${GATE}, document.forms[0].firstChild)`,
}
for (const [what, move] of Object.entries(MOVES))
  test(`moved while Send waits: ${what}: sent all the same`, async () => {
    const release = gateway.hold('/challenge')
    const { page, notes } = await open({ attributes: 'auto="submit"' })
    await page.click('text=Send')
    await untilState(page, 'working')
    await page.evaluate(move)
    release()
    await posted()
    assert.deepEqual(notes.pageErrors, [])
  })

test('removed while Send waits: the verification ends', async () => {
  const release = gateway.hold('/challenge')
  const { page } = await open({ attributes: 'auto="submit"' })
  await page.click('text=Send')
  await page.evaluate(`window.gate = ${GATE}; gate.remove()`)
  release()
  await page.waitForTimeout(1000)
  assert.equal(await page.evaluate('gate.state'), 'idle')
  assert.equal(gateway.count('POST /verify'), 0)
})

test('the solver’s frame is in the shadow tree: no style sheet and no script of the page finds it', async () => {
  const { page } = await open({
    attributes: 'auto="off"',
    before: `<style>html > iframe, iframe { display: block !important }</style><script>
window.found = []
new MutationObserver(() => found.push(...document.querySelectorAll('iframe'))).observe(document, { childList: true, subtree: true })
</script>`,
  })
  const mode = await page.evaluate(`new Promise(resolve => {
    ${GATE}.addEventListener('verified', ({ detail }) => resolve(detail.mode))
    ${GATE}.execute()
  })`)
  assert.equal(mode, 'frame')
  assert.equal(await page.evaluate('found.length'), 0)
  // In no document yet, where no frame loads.
  const detached = `{ const gate = ${GATE}.cloneNode(); gate.execute() }`
  assert.match(
    (await page.evaluate(
      `(() => ${detached.replace('gate.execute()', 'return gate.execute()')})()`,
    )) as string,
    /^\d+\|/,
  )
})

test('a cache that keeps every challenge: the second visitor is verified, and no two later addresses are equal', async () => {
  const kept = await fetch(`${service.url}/challenge`, { headers: { 'X-Site-Key': site.siteKey } })
  const body = (await kept.json()) as object
  const asked: string[] = []
  const open2 = async () => {
    gateway.fail({ path: '/challenge', answer: { status: 200, body } })
    const { page } = await open({ attributes: 'auto="off"' })
    page.on('request', request => request.url().includes('/challenge') && asked.push(request.url()))
    await page.evaluate(`${GATE}.execute()`)
    await page.evaluate(`${GATE}.reset()`)
    await page.evaluate(`${GATE}.execute()`)
  }
  gateway.clientAddress = '127.0.0.1' // the address of that challenge
  await open2()
  await open2()
  gateway.clientAddress = '198.51.100.1'
  assert.ok(asked.length >= 5, asked.join())
  const later = asked.filter(url => url.includes('?'))
  assert.equal(new Set(later).size, later.length)
  assert.equal(asked.length - later.length, 2, 'the first of each page')
})

test('properties for each attribute, also those set before the script was there', async () => {
  const { page } = await open({
    attributes: 'auto="off"',
    before: `<script>
    Object.assign(${GATE}, { theme: 'dark', disabled: true, workerSrc: '/powgate-worker.js' })
  </script>`,
  })
  const attributes = (...names: string[]) =>
    page.evaluate(`${JSON.stringify(names)}.map(name => ${GATE}.getAttribute(name))`)
  assert.deepEqual(await attributes('theme', 'disabled', 'worker-src'), ['dark', '', '/powgate-worker.js'])
  await page.evaluate(`Object.assign(${GATE}, { form: 'contact', disabled: false, threads: 2 })`)
  assert.deepEqual(await attributes('form', 'disabled', 'threads'), ['contact', null, '2'])
  const without = await page.evaluate(`customElements.get('pow-gate').observedAttributes
    .map(name => name.replace(/-./, ([, letter]) => letter.toUpperCase()))
    .filter(name => !Object.hasOwn(customElements.get('pow-gate').prototype, name))`)
  assert.deepEqual(without, ['lang', 'name']) // `lang` is the browser's own
  assert.equal(await page.evaluate(`${GATE}.matches(':state(idle)') && !${GATE}.hasAttribute('state')`), true)
})

test('an element without an end tag: the button is shown and works, and the console says it once', async () => {
  const warnings: string[] = []
  pages.forms.length = 0
  pages.add(
    '/form',
    `<!doctype html><html lang="en"><title>A form</title><body><form action="/received" method="post">
<input name="name" value="Ada"><pow-gate site-key="${site.siteKey}" auto="load" /><label>More <input name="more"></label><button>Send</button></form>${SCRIPT}`,
  )
  const { page } = await visit(browser, 'about:blank')
  page.on('console', message => message.type() === 'warning' && warnings.push(message.text()))
  await page.goto(`${pages.origin()}/form`)
  await untilState(page, 'verified')
  await page.getByLabel('More').fill('x')
  await page.click('text=Send')
  await posted()
  assert.deepEqual(
    warnings.map(line => /<pow-gate \.\.\.><\/pow-gate>/.exec(line)?.[0]),
    ['<pow-gate ...></pow-gate>'],
  )
})

/** Read in a worker, out of sight. */
const WEBGL = 'OffscreenCanvas'

for (const [what, touch] of [
  ['a focus', '.focus()'],
  ['a pointer', ".dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, composed: true }))"],
  ['a change, as by autofill', ".dispatchEvent(new Event('change', { bubbles: true }))"],
])
  test(`by default nothing is read and asked for before the first touch: ${what}`, async () => {
    const { page } = await open({ attributes: 'auto="focus"', before: `<script>${WATCH_READS}</script>` })
    await page.locator('pow-gate .text').filter({ hasText: 'Ready to verify' }).waitFor()
    await page.waitForTimeout(700)
    assert.deepEqual(await readsOf(page), [])
    assert.equal(gateway.count('GET /challenge'), 0)
    await page.evaluate(`document.forms[0].elements.name${touch}`)
    await untilState(page, 'verified')
    assert.deepEqual(
      await readsOf(page),
      documentedReads('flags').filter(name => name !== WEBGL),
    )
  })

test('of a page without a language only the browser’s languages are read before the first touch', async () => {
  const { page } = await open({
    attributes: 'auto="focus" lang=""',
    before: `<script>${WATCH_READS}</script>`,
  })
  await page.locator('pow-gate .text').filter({ hasText: 'Ready to verify' }).waitFor()
  assert.deepEqual(await readsOf(page), ['languages'])
})

test('autofocus is no touch; a key is, and a pointer on the element', async () => {
  const html = formPage(`site-key="${site.siteKey}" auto="focus"`, { script: SCRIPT }).replace(
    'name="name"',
    'name="name" autofocus',
  )
  pages.add('/form', html)
  for (const touch of ['key', 'pointer']) {
    gateway.requests.length = 0
    const { page } = await visit(browser, `${pages.origin()}/form`)
    const isFocused = () => page.evaluate(`document.activeElement.name === 'name'`)
    await eventually(60_000, 'the field has the focus', isFocused)
    await page.waitForTimeout(500)
    assert.equal(gateway.count('GET /challenge'), 0)
    if (touch === 'key') await page.keyboard.press('x')
    else await page.locator('pow-gate').click()
    await untilState(page, 'verified')
  }
})

const SECOND = `<pow-gate site-key="${site.siteKey}" auto="off"></pow-gate>`
const REPLACED = `{
  document.querySelector('form[action] > button').click()
  setTimeout(() => document.forms[0].replaceWith(document.forms[0].cloneNode(true)), 300)
}`
const SILENT: readonly [about: string, parts: Parts, act: string, code: string | undefined][] = [
  ['form.submit() before the token is there', {}, 'document.forms[0].submit()', 'no-token'],
  [
    'form data for a script’s own request',
    {},
    '{ for (const form of document.forms) new FormData(form) }',
    'no-token',
  ],
  [
    'a button that asks for no check',
    { fields: '<button formnovalidate id="draft">Draft</button>' },
    'draft.click()',
    undefined,
  ],
  ['an element without a field', { attributes: 'name=""' }, 'new FormData(document.forms[0])', undefined],
  ['a disabled element', { attributes: 'disabled' }, 'new FormData(document.forms[0])', undefined],
  ['two elements in a form', { fields: SECOND }, '', 'two-in-form'],
  [
    'two elements with fields of two names',
    { fields: SECOND.replace('auto', 'name="other" auto') },
    '',
    undefined,
  ],
  ['two elements in two forms', { before: `<form>${SECOND}</form>` }, '', undefined],
  ['a form that is replaced while Send waits', { attributes: 'auto="submit"' }, REPLACED, 'send-lost'],
  [
    'an endpoint with a path too many',
    { attributes: `endpoint="${gateway.origin()}/challenge/"` },
    '',
    'endpoint-path',
  ],
]
for (const [about, parts, act, code] of SILENT)
  test(`${about}: the console says ${code ?? 'nothing'}`, async () => {
    gateway.fail({ path: '/challenge', delayMs: 700 })
    const { page, advice } = await open({ ...parts, attributes: `${parts.attributes ?? ''} auto="off"` })
    await page.evaluate(act)
    if (code === undefined) await page.waitForTimeout(500)
    else await eventually(60_000, code, () => advice.length > 0)
    gateway.recover()
    assert.deepEqual(advice, code === undefined ? [] : [code])
  })

test('a site key and an endpoint with spaces around: verified', async () => {
  const key = `\u00a0${site.siteKey} \n`
  pages.add('/form', formPage(`site-key="${key}" endpoint=" ${gateway.origin()} "`, { script: SCRIPT }))
  const { page } = await visit(browser, `${pages.origin()}/form`)
  await untilState(page, 'verified')
})

const OUTSIDE = `<form></form><pow-gate site-key="${site.siteKey}"></pow-gate>${SCRIPT}`
const gate = (attributes: string) => `<form><pow-gate ${attributes}></pow-gate></form>${SCRIPT}`
const key = `site-key="${site.siteKey}"`
const MISTAKES: readonly [about: string, body: string, says: RegExp][] = [
  [
    'an endpoint without its scheme',
    gate(`${key} endpoint="captcha.example.com"`),
    /write https:\/\/captcha\.example\.com/,
  ],
  [
    'an endpoint with a port and no scheme',
    gate(`${key} endpoint="localhost:8080"`),
    /write https:\/\/localhost:8080/,
  ],
  ['an API key in the page', gate('site-key="sk_00000000_abcdefgh"'), /secret.*[Rr]evoke/],
  ['sitekey', gate('sitekey="x"'), /write site-key in place of sitekey/],
  ['data-sitekey', gate('data-sitekey="x"'), /write site-key in place of data-sitekey/],
  ['an element outside of every form', OUTSIDE, /outside of every form.*form="ID"/],
  [
    'a test key while off',
    gate('site-key="site_TestAlwaysPasses000000" auto="load"'),
    /POWGATE_TEST_KEYS=on/,
  ],
]
for (const [about, body, says] of MISTAKES)
  test(`the console names the mistake and the mend before anybody uses the form: ${about}`, async () => {
    const lines: string[] = []
    pages.add('/form', `<!doctype html><html lang="en"><title>A form</title><body>${body}`)
    const { page } = await visit(browser, 'about:blank')
    page.on('console', message => lines.push(message.text()))
    await page.goto(`${pages.origin()}/form`)
    const said = () => `a line that matches ${says}: ${lines}`
    await eventually(60_000, said, () => lines.some(line => says.test(line)))
    assert.equal(lines.filter(line => says.test(line)).length, 1)
    assert.ok(!lines.join().includes('abcdefgh'), 'the secret itself')
  })

for (const [attributes, what] of [
  ['auto="off"', 'starts by code'],
  ['name=""', 'has no field'],
] as const)
  test(`an element outside of forms that ${what}: nothing on the console`, async () => {
    const { page, notes } = await visit(browser, 'about:blank')
    pages.add(
      '/form',
      `<!doctype html><html lang="en"><title>A form</title>${OUTSIDE.replace('<pow-gate', `<pow-gate ${attributes}`)}`,
    )
    page.on('console', message => assert.fail(message.text()))
    await page.goto(`${pages.origin()}/form`)
    await page.waitForTimeout(500)
    assert.deepEqual(notes.troubles, [])
  })
