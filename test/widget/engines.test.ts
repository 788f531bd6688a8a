/** The widget in Firefox and WebKitGTK: the same tests in both. (Chromium has the other files of this folder.) */

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { Client } from '../harness/client.ts'
import { DRIVEN_ENGINES, DrivenBrowser, KEYS } from '../harness/driven-browser.ts'
import { eventually } from '../harness/eventually.ts'
import { ALWAYS_EASY, UNLIMITED } from '../harness/service.ts'
import {
  addWidgetPage,
  COMPLAINTS,
  GATE,
  startSurroundings,
  strictPages,
  VERIFIED,
  type Verified,
  type WidgetPage,
} from '../harness/widget.ts'

/** The browsers say that a program controls them, which lowers the score. */
const OPEN = { threshold: 0 }
const surroundings = await startSurroundings(UNLIMITED, OPEN)
const { service, site, gateway, pages } = surroundings
const hashwxSite = await service.createSite({ ...OPEN, puzzle: 'hashwx', difficulty: ALWAYS_EASY })
const inside = (selector: string) => `${GATE}.shadowRoot.querySelector('${selector}')`
const SEND = "document.querySelector('form > button')"
const FOCUS = `document.activeElement.localName + ' ' + (document.activeElement.shadowRoot?.activeElement?.className ?? '')`

for (const engine of DRIVEN_ENGINES) {
  describe(engine, () => {
    let browser: DrivenBrowser

    before(async () => {
      browser = await DrivenBrowser.start(engine)
    })
    after(() => browser.stop())
    // A page that stays open would renew its token in the middle of another test.
    afterEach(() => browser.open('about:blank'))

    async function open(page: WidgetPage = {}): Promise<void> {
      addWidgetPage(surroundings, page)
      await browser.open(`${pages.origin()}/form`)
      // Text and button come a moment after the element.
      await eventually(60_000, 'a text', () => browser.evaluate(`${inside('.box')}.lang !== ''`))
    }

    async function untilState(state: string): Promise<void> {
      const isIn = () => browser.evaluate(`${GATE}?.state === '${state}'`)
      await eventually(60_000, `${engine}: ${state}`, isIn)
    }

    async function assertQuiet(): Promise<void> {
      assert.deepEqual(await browser.evaluate(COMPLAINTS), [])
      assert.deepEqual(pages.reports, [])
    }

    async function assertRedeemed(token: unknown, { apiKey }: { apiKey: string } = site): Promise<void> {
      const { json } = await new Client(service.url).verifyToken(apiKey, { token })
      assert.equal(json.success, true)
    }

    /** The site's backend gets the form once, with one token, and the browser shows its answer. */
    async function assertPosted(): Promise<void> {
      const fields = await eventually(60_000, `${engine}: the form arrives`, () => pages.forms[0])
      const isAnswered = () => browser.evaluate("document.title === 'Received'")
      await eventually(60_000, `${engine}: the answer is shown`, isAnswered)
      assert.equal(fields.get('name'), 'Ada')
      assert.equal(fields.getAll('powgate-token').length, 1)
      await assertRedeemed(fields.get('powgate-token'))
      assert.equal(pages.forms.length, 1)
    }

    test('verified on load; the form carries the token, which is redeemed', async () => {
      await open()
      await untilState('verified')
      await assertQuiet()
      assert.equal(gateway.count('GET /challenge'), 1)
      await browser.click(SEND)
      await assertPosted()
    })

    test('a page that others wrote: a script requests the submission, moves the form, and sends it twice', async () => {
      const release = gateway.hold('/challenge')
      await open({ attributes: 'auto="submit"' })
      await browser.evaluate('document.forms[0].requestSubmit()')
      await untilState('working')
      await browser.evaluate('document.body.prepend(document.forms[0])')
      release()
      await assertPosted()

      await open()
      await untilState('verified')
      assert.equal(await browser.evaluate(`${GATE}.matches(':state(verified)')`), true)
      assert.equal(await browser.evaluate(`${GATE}.querySelector('input').value === ${GATE}.token`), true)
      await browser.evaluate(`(${SEND}.click(), ${SEND}.click())`)
      await assertPosted()
    })

    for (const [mode, solver, attributes, policy] of strictPages(gateway.origin()))
      for (const [puzzle, { siteKey, apiKey }] of Object.entries({ sha256: site, hashwx: hashwxSite }))
        test(`mode ${mode}, ${puzzle}: on a page that allows just what it needs, its token is redeemed`, async () => {
          await open({ attributes, policy, siteKey })
          const verified = await browser.evaluate<Verified>(VERIFIED)
          assert.deepEqual([verified.mode, verified.solver], [mode, solver])
          await assertRedeemed(verified.token, { apiKey })
          await assertQuiet()
        })

    test('by keyboard: the button is reached, works, and hands the focus on instead of losing it', async () => {
      await open({ attributes: 'auto="off"' })
      await browser.evaluate('document.forms[0].elements.name.focus()')
      await browser.press(KEYS.tab)
      assert.equal(await browser.evaluate(FOCUS), 'pow-gate button')
      await browser.press(KEYS.enter)
      await untilState('verified')
      assert.match(await browser.evaluate<string>(FOCUS), /^pow-gate box/)
      await browser.press(KEYS.tab)
      assert.equal(await browser.evaluate(FOCUS), 'button ')
      await assertQuiet()
      await browser.press(KEYS.enter)
      await assertPosted()
    })

    for (const sentBy of ['Send', 'Enter, without a button'])
      test(`like a browser of 2021, no constructed sheets, form-associated elements, submitter or requestSubmit: sent by ${sentBy}`, async () => {
        const lacking = [
          'HTMLElement.prototype.attachInternals',
          'HTMLFormElement.prototype.requestSubmit',
          'SubmitEvent.prototype.submitter',
          'CSSStyleSheet.prototype.replaceSync',
        ]
        const more = `<script>${lacking.map(member => `delete ${member};`).join('')}</script>`
        await open({ attributes: 'auto="submit"', more })
        assert.equal(await browser.evaluate(`getComputedStyle(${inside('.box')}).display`), 'flex')
        const field = 'document.forms[0].elements.name'
        await browser.evaluate(`document.forms[0].onsubmit = () => { ${field}.value = 'Ada' }`)
        await browser.evaluate(`${field}.value = 'not seen by the page'`)
        if (sentBy === 'Send') await browser.click(SEND)
        else {
          await browser.evaluate(`(${SEND}.remove(), ${field}.focus())`)
          await browser.press(KEYS.enter)
        }
        await assertPosted()
      })
  })
}
