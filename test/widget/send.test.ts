/**
 * Pressing Send always shows something: where the widget stands out of view on a small screen, where it is invisible, and
 * while a visitor has to wait. The form is sent once, with what was pressed, and never with another form's token. Several widgets share a page.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../harness/eventually.ts'
import { UNLIMITED } from '../harness/service.ts'
import {
  EXPIRED_MS,
  endless,
  execute,
  GATE,
  type OpenOptions,
  openInDialog,
  posted,
  press,
  scriptTag,
  startStage,
  untilState,
  verify,
  WITH_CLOCK,
} from '../harness/widget.ts'
import { away, FAR, limited, NOT_PASSED, NOTE_COMPLAINT, REFUSED, SMALL } from './answers.ts'

const stage = await startStage(UNLIMITED)
const { site, gateway, pages } = stage

/** In place of the small window: a large one, with the widget in view, and a clock that the test sets. */
const CLOCK = { visit: WITH_CLOCK }

/** Opens a page in a small window, with the button far below the widget, unless options say otherwise. */
async function open(attributes: string, options: OpenOptions = {}): Promise<Page> {
  const usual = { visit: SMALL, fields: FAR, more: NOTE_COMPLAINT }
  const { page } = await stage.open(attributes, { ...usual, ...options })
  await page.waitForFunction('customElements.get("pow-gate")')
  return page
}

const IN_VIEW = `(() => {
  const { top, bottom, height } = ${GATE}.shadowRoot.querySelector('.box').getBoundingClientRect()
  return height > 0 && top > -1 && bottom <= innerHeight + 1
})()`
const untilSeen = (page: Page) => eventually(60_000, 'the widget is in view', () => page.evaluate(IN_VIEW))
const send = (page: Page) => page.click('text=Send')
const untilSent = () => posted(stage)

/** Notes what a screen reader says: the whole region, when something in it changes or appears that is not excluded. */
const LISTEN = `(() => {
  window.spoken = []
  const region = ${GATE}.shadowRoot.querySelector('[role=status]')
  const isHeard = ({ target }) => !(target.closest ? target : target.parentElement).closest('[aria-live=off]')
  const isShown = () => region.firstChild.checkVisibility({ checkVisibilityCSS: true })
  const text = () => [...region.children].map(part => part.textContent).join(' ').trim()
  new MutationObserver(changes => { if (changes.some(isHeard) && isShown()) spoken.push(text()) })
    .observe(region, { childList: true, characterData: true, subtree: true, attributes: true })
})()`
const spoken = (page: Page) => page.evaluate('spoken') as Promise<string[]>
const untilSpoken = (page: Page, count: number) =>
  eventually(60_000, `${count} announcements`, async () => (await spoken(page)).length >= count)

/** From now on timers run only when the test says so; a busy machine moves nothing. */
async function stopClock(page: Page): Promise<void> {
  const now = (await page.evaluate('Date.now()')) as number
  await page.clock.pauseAt(now + 60_000) // a moment that is not past when this command arrives
}

for (const attributes of ['auto="submit"', 'auto="submit" invisible']) {
  test(`a submission that waited and failed, of a button that the page locked: in view, focused, and the form says why: ${attributes}`, async () => {
    const page = await open(attributes, { form: 'onclick="setTimeout(() => (event.target.disabled = 1))"' })
    const release = gateway.hold('/challenge', REFUSED)
    await send(page)
    await page.waitForFunction("document.activeElement.localName === 'body'")
    release()
    await untilState(page, 'failed')
    await untilSeen(page)
    assert.equal(await page.evaluate('document.activeElement.localName'), 'pow-gate')
    assert.equal(await page.evaluate('complaint'), 'Not set up correctly. Please tell the site’s owner')
  })

  test(`a submission that waits for longer than people do: in view, and sent all the same: ${attributes}`, async () => {
    const page = await open(attributes)
    const release = gateway.hold('/verify')
    await page.evaluate(LISTEN)
    await send(page)
    await untilSeen(page)
    await untilSpoken(page, 1)
    await page.waitForTimeout(1000)
    const waiting = 'Verifying…  Your form is sent right after that'
    assert.deepEqual(await spoken(page), [waiting], 'announced once')
    await send(page)
    await untilSeen(page)
    await untilSpoken(page, 2)
    await page.waitForTimeout(200)
    assert.deepEqual(await spoken(page), [waiting, waiting], 'again after another Send')
    assert.equal(pages.forms.length, 0)
    release()
    await untilSent()
  })
}

const DISABLED = "document.querySelector('fieldset').disabled"
/** A page that disables its fields, the widget's among them, some time after Send is pressed. The button is outside of them. */
async function openDisabling(afterMs: number): Promise<Page> {
  const edit = ['<label>Name', '<fieldset><label>Name'] as const
  const page = await open('auto="submit"', { edit, fields: '</fieldset>' })
  await page.evaluate(`document.forms[0].onclick = () => setTimeout(() => (${DISABLED} = true), ${afterMs})`)
  return page
}

test('fields that the page disables right after Send are sent, the widget’s too, and once if Send is pressed again', async () => {
  const page = await openDisabling(0)
  const release = gateway.hold('/verify')
  await send(page)
  await page.waitForFunction(DISABLED)
  await send(page)
  await page.waitForTimeout(200)
  assert.equal(pages.forms.length, 0)
  release()
  assert.match(`${await posted(stage)}`, /^name=Ada&powgate-token=\d/)
})

test('a widget that the page disables while the form waits gives up, and nothing is sent', async () => {
  const page = await openDisabling(500)
  const release = gateway.hold('/verify')
  await send(page)
  await untilState(page, 'idle')
  release()
  await page.waitForTimeout(200)
  assert.equal(pages.forms.length, 0)
})

for (const show of ["document.querySelector('dialog').showModal()", 'document.forms[0].showPopover()'])
  test(`a form that is closed while it waits, and opened again by ${show}, is sent by another Send alone`, async () => {
    const isPopover = show.endsWith('Popover()')
    const page = await open('auto="submit"', { form: isPopover ? 'popover' : '', fields: '' })
    await (isPopover ? page.evaluate(show) : openInDialog(page))
    const release = gateway.hold('/verify')
    await send(page)
    await page.keyboard.press('Escape')
    await untilState(page, 'idle')
    await page.evaluate(show)
    release()
    await page.waitForTimeout(500)
    assert.equal(pages.forms.length, 0)
    await send(page)
    await untilSent()
  })

test('a button with formnovalidate that is pressed while the form waits for another: only its own submission comes', async () => {
  const form = 'onsubmit="document.title += event.submitter.textContent; return false"'
  const page = await open('auto="submit"', { form, fields: '<button formnovalidate>Draft</button>' })
  const release = gateway.hold('/verify')
  await send(page)
  await page.click('text=Draft')
  release()
  await page.waitForTimeout(500)
  assert.equal(await page.title(), 'A formDraft')
})

test('a submission that fails takes no focus from a field that the visitor has gone on to', async () => {
  const page = await open('auto="submit"', { fields: `${FAR}<textarea></textarea>` })
  const release = gateway.hold('/challenge', REFUSED)
  await send(page)
  await page.focus('textarea')
  release()
  await untilState(page, 'failed')
  await page.waitForTimeout(200)
  assert.equal(await page.evaluate('document.activeElement.localName'), 'textarea')
})

test('invisible: any wait is shown and announced, also one without an end', async () => {
  const busy = await open('invisible', { fault: { path: '/challenge', answer: limited(60) }, visit: {} })
  await busy.getByRole('status').filter({ hasText: 'Too many requests' }).waitFor()

  const offline = await open('invisible auto="off"', { visit: {} })
  await offline.context().setOffline(true)
  await execute(offline)
  await offline.getByRole('status').filter({ hasText: 'No internet' }).waitFor()
})

test('a long solve: progress, a word after 10 and 30 seconds, and no button', async () => {
  const fault = { path: '/challenge', answer: endless() }
  const page = await open('auto="off" solver="page"', { fault, ...CLOCK })
  await page.evaluate(LISTEN)
  await press(page, 'Verify')
  const bar = page.getByRole('progressbar', { name: 'Human verification' })
  await bar.waitFor()
  await page.locator('pow-gate .mark[d=""]').waitFor({ state: 'attached' }) // no picture in the ring: it hashes
  // Looks are taken at 1, 12 and 32 s: before the words, after the first, and after the second.
  for (const seconds of [1, 11, 20]) {
    for (let second = 0; second < seconds; second++) await page.clock.fastForward(1000) // a timer that is due fires once
    await page.waitForTimeout(100)
    assert.equal(await page.locator('pow-gate button').isVisible(), false)
  }
  assert.match((await bar.getAttribute('aria-valuenow'))!, /^\d{1,2}$/)
  await page.evaluate(`${GATE}.cancel()`)
  const slow = (announced: number) => `Still verifying after ${announced}\u00a0seconds`
  assert.deepEqual(await spoken(page), ['Verifying…', slow(10), slow(30), 'Not verified yet'])
  assert.equal(await page.evaluate(`${GATE}.state`), 'idle')
  assert.equal(await bar.count(), 0)
})

test('the time of a wait is announced once, and the count-down is not', async () => {
  const page = await open('auto="off"', { fault: { path: '/challenge', answer: limited(60) }, ...CLOCK })
  await page.evaluate(LISTEN)
  await stopClock(page)
  await press(page, 'Verify')
  const detail = page.locator('pow-gate .detail')
  await detail.filter({ hasText: /in.(6\d.seconds)/ }).waitFor() // the wait of 60 s, with its jitter
  await page.clock.runFor(20_000)
  await detail.filter({ hasText: /in.(4\d.seconds)/ }).waitFor()
  const said = await spoken(page)
  assert.match(said.join(), /^Verifying…,Too many requests Continues in\s6[01]\sseconds$/)
  // Without a space in the tree, Orca reads the two texts as one word.
  const session = await page.context().newCDPSession(page)
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  const texts = nodes.filter(({ role }) => role?.value === 'StaticText').map(({ name }) => name?.value)
  assert.match(texts.join(''), /Too many requests /)
})

test('ten widgets on a long page: only those in view ask for a challenge, and one whose form is used', async () => {
  const form = `${FAR}<form action="/received" method="post"><input name="name" value="Ada"><pow-gate site-key="${site.siteKey}" auto="load"></pow-gate><button>Send</button></form>`
  const visit = { viewport: { width: 400, height: 300 } }
  const page = await open('', { visit, fields: '', script: form.repeat(9) + scriptTag(gateway) }) // ten with the page's own
  await untilState(page, 'verified')
  await page.waitForTimeout(500)
  assert.equal(gateway.count('GET /challenge'), 1)
  await page.locator('input').nth(5).focus()
  await page.locator('button').nth(8).click({ noWaitAfter: true })
  await untilSent()
  assert.ok(gateway.count('GET /challenge') <= 4) // those that were scrolled into view
})

for (const mode of ['frame', 'page'])
  test(`three widgets in view solve one after the other, each for a token of its own: ${mode}`, async () => {
    const more = `<script>frameCounts = []
setInterval(() => {
  const gates = [...document.querySelectorAll('pow-gate')]
  frameCounts.push(gates.filter(gate => gate.shadowRoot?.querySelector('iframe')).length)
}, 5)</script>`
    const page = await open(`solver="${mode}"`, { more, visit: {} })
    await page.evaluate(`${GATE}.after(...[1, 2].map(() => ${GATE}.cloneNode()))`)
    await eventually(60_000, 'all are verified', () =>
      page.evaluate(`[...document.querySelectorAll('pow-gate')].every(({ state }) => state === 'verified')`),
    )
    assert.equal(Math.max(...((await page.evaluate('frameCounts')) as number[])), mode === 'frame' ? 1 : 0)
    const tokens = await page.evaluate(`[...document.querySelectorAll('pow-gate')].map(({ token }) => token)`)
    assert.equal(new Set(tokens as string[]).size, 3)
    assert.ok(gateway.count('GET /challenge') >= 3)
  })

test('a removed element has no timers: it neither renews nor expires, until it comes back', async () => {
  const page = await open('', CLOCK)
  await untilState(page, 'verified')
  await page.evaluate(`window.events = []
window.gate = ${GATE}
gate.addEventListener('expired', ({ type }) => events.push(type))
gate.remove()`)
  await page.clock.fastForward(EXPIRED_MS)
  assert.deepEqual(await page.evaluate('events'), [])
  await page.evaluate('document.forms[0].append(gate)')
  assert.deepEqual(await page.evaluate('events'), ['expired'])
})

test('a service that stays away for 30 s: Send answers within 100 ms, one reason stays, and nothing moves beside the box', async () => {
  const fault = { path: '/challenge', times: 100, answer: away(8) }
  const page = await open('auto="focus"', { fault, ...CLOCK })
  await page.locator('pow-gate .text').filter({ hasText: 'Protected against bots' }).waitFor()
  // Notes every 100 ms the box's height and the place of a text beside it, in two layouts, and each new text of the element.
  await page.evaluate(`{
window.places = { block: [], flex: [] }
window.texts = []
const form = document.forms[0]
form.style.alignItems = 'baseline'
${GATE}.insertAdjacentHTML('afterend', '<b>beside</b>')
const part = name => ${GATE}.shadowRoot.querySelector(name)
setInterval(() => {
  for (const layout in places) {
    form.style.display = layout
    places[layout].push([part('.box').offsetHeight, form.querySelector('b').offsetTop])
  }
  if (texts.at(-1) !== part('.text').textContent) texts.push(part('.text').textContent)
}, 100)
}`)
  await stopClock(page)
  await page.getByRole('button', { name: 'Send' }).press('Enter', { noWaitAfter: true })
  await page.clock.runFor(90)
  assert.equal(await page.locator('pow-gate .sending').textContent(), 'Your form is sent right after that')
  // A retry is a real request: until its answer is there, the count-down stands at 0.
  const counting = page.locator('pow-gate .detail').filter({ hasText: /in.[1-9]\d*.second/ })
  await counting.waitFor()
  for (let seconds = 0; seconds < 30; seconds++) {
    await page.clock.runFor(1000)
    await counting.waitFor()
  }
  assert.ok(gateway.count('GET /challenge') >= 4)
  const placeCount = (layout: string) => page.evaluate(`new Set(places.${layout}.map(String)).size`)
  for (const layout of ['block', 'flex']) assert.equal(await placeCount(layout), 1, layout)
  const reasons = await page.evaluate('texts.filter(text => !/^(Protected|Verifying)/.test(text))')
  assert.deepEqual(reasons, ['The service is busy'])
  assert.match(await page.locator('pow-gate .body').innerText(), /Your form is sent right after that/)
})

for (const { auto, about, path, answer } of [
  { auto: 'submit', about: 'a result that does not pass', path: '/verify', answer: NOT_PASSED },
  { auto: 'off', about: 'a wait of hours', path: '/challenge', answer: limited(7200) },
])
  test(`${about} while the form waits: “Try again” sends it, once, with its button and what the page has disabled: auto="${auto}"`, async () => {
    const more = `<script>document.querySelector('form > button').onclick = () => setTimeout(() => {
  for (const control of document.querySelectorAll('label > input, form > button')) control.disabled = true
})</script>`
    const edit = ['<button>', '<button name="by" value="send">'] as const
    const page = await open(`auto="${auto}"`, { more: NOTE_COMPLAINT + more, edit, fields: '' })
    const release = gateway.hold(path, answer)
    if (auto === 'off') await press(page, 'Verify') // with `submit`, Send starts the verification
    await send(page)
    release()
    await untilState(page, 'failed')
    await press(page, 'Try again')
    await untilSent()
    await page.waitForTimeout(200)
    assert.match(`${await posted(stage)}`, /^name=Ada&powgate-token=\d.*&by=send$/)
  })

test('a failure without Send, a dialog that was closed, and a reset: “Try again” and “Verify” only verify', async () => {
  const page = await open('auto="off"', { fields: '' })
  await openInDialog(page)
  const fail = async (sends: boolean) => {
    await page.evaluate(`${GATE}.reset()`)
    const release = gateway.hold('/verify', NOT_PASSED)
    await press(page, 'Verify')
    await untilState(page, 'working')
    if (sends) await send(page)
    release()
    await untilState(page, 'failed')
  }
  await fail(false)
  await press(page, 'Try again')
  await untilState(page, 'verified')
  await fail(true)
  const closing = 'new Promise(done => { document.querySelector("dialog").onclose = () => done() })'
  await page.evaluate(`void (window.closing = ${closing})`)
  await page.keyboard.press('Escape')
  await page.evaluate('closing')
  await page.evaluate('document.querySelector("dialog").showModal()')
  await press(page, 'Try again')
  await untilState(page, 'verified')
  await fail(true)
  await page.evaluate(`${GATE}.reset()`)
  await verify(page)
  await page.waitForTimeout(300)
  assert.equal(pages.forms.length, 0)
})

for (const [form, attributes] of [
  // They make the form `window.form`: the window, which is in the path of each event, then seems to have a form as controls have.
  ['id="form"', ''],
  ['name="form"', ''],
  ['', 'form="nowhere"'],
] as const)
  test(`a form without an element carries no token of another’s: <form ${form}>, <pow-gate ${attributes}>`, async () => {
    const other = '<form action="/received" method="post"><input name="q"><button>Find</button></form>'
    const page = await open(attributes, { form, visit: {}, script: other + scriptTag(gateway) })
    await untilState(page, 'verified')
    await page.click('text=Find')
    assert.deepEqual([...(await posted(stage)).keys()], ['q'])
  })

test('fields that the browser does not validate keep no form from waiting: disabled and read-only ones', async () => {
  const field = (attribute: string) => `<input type="email" value="-" ${attribute}>`
  const fields = `${field('disabled')}${field('readonly')}<fieldset disabled>${field('')}</fieldset>`
  const page = await open('auto="submit"', { fields, visit: {} })
  await send(page)
  await untilSent()
})

for (const form of ['novalidate', ''])
  test(`two elements in a form: sent once, with both tokens, after an invalid element of the page is put right: <form ${form}>`, async () => {
    const fields = `<x-field></x-field><pow-gate site-key="${site.siteKey}" auto="submit" name="second"></pow-gate>`
    const page = await open('auto="submit"', { fields, form, visit: {} })
    await page.evaluate(`customElements.define('x-field', class extends HTMLElement {
  static formAssociated = true
  setValid = (internals => isValid => internals.setValidity({ customError: !isValid }, '-'))(this.attachInternals())
})`)
    if (form === '') {
      await page.evaluate("document.querySelector('x-field').setValid(false)")
      await send(page)
      await page.waitForFunction(`[...document.querySelectorAll('pow-gate')].every(({ token }) => token)`)
      await page.waitForTimeout(300)
      assert.equal(pages.forms.length, 0)
      await page.evaluate(`document.querySelector('x-field').setValid(true)
for (const gate of document.querySelectorAll('pow-gate')) gate.reset()`)
    }
    await send(page)
    assert.deepEqual([...(await posted(stage)).keys()], ['name', 'powgate-token', 'second'])
  })

test('a button that is no submit button any more when the token is there: the form is sent all the same', async () => {
  const page = await open('auto="submit"', { visit: {} })
  const release = gateway.hold('/verify')
  await send(page)
  await page.evaluate("document.querySelector('form > button').type = 'button'")
  release()
  await untilSent()
})

test('a form that a script submits, and whose handler checks another form: no verification begins for that one', async () => {
  const other = `<form id="other"><pow-gate site-key="${site.siteKey}" auto="load"></pow-gate></form>`
  const page = await open('auto="submit"', { visit: {}, fields: '', script: other + scriptTag(gateway) })
  await untilState(page, 'verified', '#other pow-gate')
  await page.evaluate(`other.onsubmit = () => !!document.forms[0].checkValidity()
other.requestSubmit()`)
  await page.waitForTimeout(300)
  assert.equal(gateway.count('GET /challenge'), 1)
})
