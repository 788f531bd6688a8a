/** Pressing Send in every state of the widget, in view, out of view and invisible: what a person sees and hears one second later. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import type { VisitOptions } from '../harness/browser.ts'
import type { Fault } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { UNLIMITED } from '../harness/service.ts'
import { endless, execute, expire, GATE, startStage, untilState, WITH_CLOCK } from '../harness/widget.ts'
import { FAR, limited, NOTE_COMPLAINT, REFUSED, SMALL } from './answers.ts'

const { pages, open } = await startStage(UNLIMITED)

interface State {
  readonly attributes?: string
  readonly fault?: Fault
  /** Leads from the loaded page to the state. */
  readonly reach?: (page: Page) => Promise<unknown>
  /** A token can be there within a second, and the form is sent with it. */
  readonly maySend?: true
}

const says = (words: string) => (page: Page) =>
  page.locator('pow-gate .text').filter({ hasText: words }).waitFor({ state: 'attached' })

const atChallenge = (fault: Omit<Fault, 'path'>) => ({ fault: { path: '/challenge', times: 100, ...fault } })

const STATES: Readonly<Record<string, State>> = {
  'assets are loading': {
    attributes: 'auto="submit"',
    fault: { path: /worker|frame|page|wasm/, times: 100, delayMs: 15_000 }, // longer than the look
    reach: async page => {
      await execute(page)
      await untilState(page, 'working')
    },
  },
  'idle, auto="submit"': { attributes: 'auto="submit"', maySend: true },
  'idle, auto="off"': { attributes: 'auto="off"' },
  '429, Retry-After: 60': { ...atChallenge({ answer: limited(60) }), reach: says('Too many requests') },
  offline: { attributes: 'auto="submit"', reach: page => page.context().setOffline(true) },
  'refused (403)': { ...atChallenge({ answer: REFUSED }), reach: page => untilState(page, 'failed') },
  'expired, auto="off"': { attributes: 'auto="off"', reach: expire },
  'the service is down': { ...atChallenge({ isDropped: true }), reach: says('cannot be reached') },
  solving: {
    attributes: 'threads="1"',
    ...atChallenge({ answer: endless() }),
    reach: page => page.waitForFunction('window.hasProgress'),
  },
}

const VIEWS: Readonly<Record<string, { attributes: string; fields: string; visit: VisitOptions }>> = {
  'in view': { attributes: '', fields: '', visit: {} },
  'out of view': { attributes: '', fields: FAR, visit: SMALL },
  invisible: { attributes: 'invisible', fields: FAR, visit: SMALL },
}

/** Runs before the widget: notes its complaint as `complaint`, and that it solves. */
const PREPARE = `${NOTE_COMPLAINT}<script>addEventListener('progress', () => { window.hasProgress = true }, true)</script>`

interface Look {
  /** The element's text that was in view last. */
  readonly seen: string
  /** What the live region has said since Send, and what the browser says at the element about the form. */
  readonly said: readonly string[]
}

/**
 * Looks a second after the click on Send. Of the element's parts `.body` is the live region, in which `.text` is seen and said, and
 * `.sending` said. A text that is not rendered is neither.
 */
const RECORD = `{
const part = name => ${GATE}.shadowRoot.querySelector(name)
const rendered = name => part(name).checkVisibility({ checkVisibilityCSS: true }) ? part(name).textContent : ''
const seen = () => {
  const { top, bottom } = part('.text').getBoundingClientRect()
  return top < -1 || bottom > innerHeight + 1 ? '' : rendered('.text')
}
const said = []
let lastSaid = rendered('.text')
new MutationObserver(() => {
  const text = rendered('.text') && [rendered('.text'), rendered('.sending')].filter(Boolean).join(' ')
  if (text && text !== lastSaid) said.push(text)
  lastSaid = text
}).observe(part('.body'), { childList: true, characterData: true, subtree: true, attributes: true })
// A task later, because the widget may prevent the browser's complaint.
document.addEventListener('invalid', event => setTimeout(() => event.defaultPrevented || said.push(complaint)), true)
let lastSeen = ''
document.addEventListener('click', () => {
  said.length = 0
  setInterval(() => { lastSeen = seen() || lastSeen }, 50)
  setTimeout(() => { window.look = { seen: seen() || lastSeen, said: said.filter(Boolean) } }, 1000)
}, { capture: true, once: true })
}`

for (const [state, { attributes = '', fault, reach, maySend }] of Object.entries(STATES))
  for (const [view, { attributes: ofView, fields, visit }] of Object.entries(VIEWS))
    test(`${state}, ${view}: Send shows something and says something within a second, or sends`, async () => {
      const options = { fields, more: PREPARE, visit: { ...visit, ...WITH_CLOCK }, ...(fault && { fault }) }
      const { page } = await open(`${attributes} ${ofView}`, options)
      await page.locator('pow-gate:defined').waitFor({ state: 'attached' })
      await reach?.(page)
      await page.evaluate(RECORD)
      // The keyboard is used because texts that change may move the button away from a pointer.
      await page.getByRole('button', { name: 'Send' }).press('Enter', { noWaitAfter: true })
      const look = await eventually(60_000, 'a look', async () => {
        if (pages.forms.length > 0) return 'sent'
        return (await page.evaluate('window.look').catch(() => undefined)) as Look | undefined
      })
      if (look === 'sent') return assert.ok(maySend && pages.forms[0]!.get('powgate-token'))
      assert.notEqual(look.seen, '', JSON.stringify(look))
      assert.notDeepEqual(look.said, [], JSON.stringify(look))
    })
