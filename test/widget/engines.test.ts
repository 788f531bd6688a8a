/** The widget in Firefox and WebKitGTK: the same tests in both. (Chromium has the other files of this folder.) */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, afterEach, before, describe, test } from 'node:test'
import { checkProof } from '../../src/domain/pow.ts'
import { FIRST_COUNTER, type PuzzleName } from '../../src/protocol/proof.ts'
import { Client } from '../harness/client.ts'
import { DRIVEN_ENGINES, DrivenBrowser, KEYS } from '../harness/driven-browser.ts'
import { eventually } from '../harness/eventually.ts'
import { OLD_LIBRARIES } from '../harness/old-libraries.ts'
import { UNLIMITED } from '../harness/service.ts'
import {
  addWidgetPage,
  COMPLAINTS,
  GATE,
  startSurroundings,
  strictPages,
  strictPolicy,
  VERIFIED,
  type Verified,
  type WidgetPage,
} from '../harness/widget.ts'

/** The browsers say that a program controls them, which lowers the score. */
const OPEN = { threshold: 0 }
const surroundings = await startSurroundings({ ...UNLIMITED, POWGATE_DEMO: 'on' }, OPEN)
const { service, gateway, pages } = surroundings
const hashwxSite = await service.createSite({
  ...OPEN,
  puzzle: 'hashwx',
  difficulty: { base: 16, min: 16, max: 16 },
})
/** Tokens are renewed after 24 s and expire after 29 s, which leaves a busy machine 5 s for the renewal. */
const shortLived = await startSurroundings({ ...UNLIMITED, POWGATE_TOKEN_SECONDS: '30' }, OPEN)

const inside = (selector: string) => `${GATE}.shadowRoot.querySelector('${selector}')`
const BUTTON = inside('button')
const SEND = "document.querySelector('form > button')"
const VALID = 'document.forms[0].checkValidity()'
const FOCUS = `document.activeElement.localName + ' ' + (document.activeElement.shadowRoot?.activeElement?.className ?? '')`

const NOT_PASSED = { status: 200, body: { token: null, passed: false, expiresAt: null } }
const AWAY = { status: 503, headers: { 'Retry-After': '1' }, body: { error: 'Away.', code: 'unavailable' } }

type Proofs = { nonce: string; start?: number; counter: number; zeroBits: number }[]
const golden: Record<'first' | 'sixteenDigits', Proofs> = JSON.parse(
  readFileSync(new URL('../vectors/proof.json', import.meta.url), 'utf8'),
)
/** Those for which a busy machine does not take minutes. */
const PROOFS = [...golden.first, ...golden.sixteenDigits]
  .map(proof => ({ start: Math.max(0, proof.counter - 20_000), ...proof }))
  .filter(({ start, counter }) => counter - start < 60_000)

/** The first proofs from shortly before the end of a function, of 2^32, and of a thread's start. */
const HASHWX_PROOFS = [65_000, 2 ** 32 - 500, FIRST_COUNTER].map((start, index) => {
  const [nonce, zeroBits] = [String(index).repeat(32), 10]
  let counter = start
  while (!checkProof(nonce, counter, zeroBits, 'hashwx')) counter++
  return { nonce, zeroBits, start, counter }
})
const WORKERS = {
  sha256: { worker: '/powgate-worker.js', proofs: PROOFS },
  hashwx: { worker: '/hashwx/powgate-worker.js', proofs: HASHWX_PROOFS },
}

/** An expression: the answers of the shipped worker. */
const solvedByWorker = (puzzle: PuzzleName, kernel: string | undefined) => `(async () => {
  const found = []
  const worker = new Worker('${WORKERS[puzzle].worker}')
  const kernel = ${kernel && `await (await fetch('${gateway.origin()}/widget/${kernel}')).arrayBuffer()`}
  const script = '${gateway.origin()}/widget/hashwx-script.js'
  worker.postMessage({ kind: 'prepare', kernel, puzzle: '${puzzle}', script })
  for (const { nonce, zeroBits: difficulty, start } of ${JSON.stringify(WORKERS[puzzle].proofs)}) {
    worker.postMessage({ kind: 'solve', nonce, difficulty, start, signals: 'none' })
    found.push(await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => data.kind === 'found' && resolve([data.solver, data.counter])
      worker.onerror = ({ message }) => reject(message)
    }))
  }
  return found
})()`

for (const engine of DRIVEN_ENGINES) {
  describe(engine, () => {
    let browser: DrivenBrowser

    before(async () => {
      browser = await DrivenBrowser.start(engine)
    })
    after(() => browser.stop())
    // A page that stays open would renew its token in the middle of another test.
    afterEach(() => browser.open('about:blank'))

    async function open(page: WidgetPage = {}, on = surroundings): Promise<void> {
      addWidgetPage(on, page)
      await browser.open(`${on.pages.origin()}/form`)
      // Text and button come a moment after the element.
      await eventually(60_000, 'a text', () => browser.evaluate(`${inside('.box')}.lang !== ''`))
    }

    async function untilState(state: string, element = GATE): Promise<void> {
      const isIn = () => browser.evaluate(`${element}?.state === '${state}'`)
      await eventually(60_000, `${engine}: ${state}`, isIn)
    }

    async function assertQuiet({ pages } = surroundings): Promise<void> {
      assert.deepEqual(await browser.evaluate(COMPLAINTS), [])
      assert.deepEqual(pages.reports, [])
    }

    async function assertRedeemed(token: unknown, { service, site } = surroundings): Promise<void> {
      const { json } = await new Client(service.url).verifyToken(site.apiKey, { token })
      assert.equal(json.success, true)
    }

    /** The site's backend gets the form once, with one token, and the browser shows its answer. */
    async function assertPosted(): Promise<void> {
      const fields = await eventually(60_000, `${engine}: the form arrives`, () => pages.forms[0]?.fields)
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

    test('sent at once, the form waits for the token', async () => {
      const answer = gateway.hold('/verify')
      await open()
      await untilState('working')
      await browser.click(SEND)
      assert.equal(pages.forms.length, 0)
      answer()
      await assertPosted()
    })

    test('a page that others wrote: a script requests the submission, moves the form, and sends it twice', async () => {
      const answer = gateway.hold('/challenge')
      await open({ attributes: 'auto="submit"' })
      await browser.evaluate('document.forms[0].requestSubmit()')
      await untilState('working')
      await browser.evaluate('document.body.prepend(document.forms[0])')
      answer()
      await assertPosted()

      await open()
      await untilState('verified')
      assert.equal(await browser.evaluate(`${GATE}.matches(':state(verified)')`), true)
      assert.equal(await browser.evaluate(`${GATE}.querySelector('input').value === ${GATE}.token`), true)
      await browser.evaluate(`${SEND}.click() ?? ${SEND}.click()`)
      await assertPosted()
    })

    for (const [mode, solver, attributes, policy] of strictPages(gateway.origin())) {
      test(`mode ${mode}: on a page that allows just what it needs`, async () => {
        await open({ attributes, policy })
        const verified = await browser.evaluate<Verified>(VERIFIED)
        assert.deepEqual([verified.mode, verified.solver], [mode, solver])
        await assertRedeemed(verified.token)
        await assertQuiet()
      })
    }

    test('where all but the page’s own thread is refused, that is found at the price of one report an attempt', async () => {
      await open({ policy: strictPolicy(gateway.origin(), '') })
      assert.equal((await browser.evaluate<Verified>(VERIFIED)).mode, 'page')
      await eventually(60_000, 'two reports', () => pages.reports.length >= 2)
      // Each comes over a connection of its own, and so in any order.
      const refused = pages.reports.map(({ directive }) => directive).sort()
      assert.deepEqual(refused, ['frame-src', 'worker-src'])
    })

    test('the demo page, with the worker of its own origin', async () => {
      await browser.open(`${service.url}/demo`)
      await browser.click("document.querySelector('#name')") // its first use starts the widget
      await untilState('verified')
    })

    test('a token is renewed in silence before it expires; another expires, and the button verifies again', async () => {
      const { site } = shortLived
      const seen = `<pow-gate id="other" site-key="${site.siteKey}" auto="off"></pow-gate><script>
seen = []
for (const type of ['statechange', 'verified'])
  ${GATE}.addEventListener(type, ({ detail }) => seen.push(detail.state ?? detail.token))
</script>`
      const other = (text: string) => text.replace('pow-gate', '#other')
      await open({ more: seen }, shortLived)
      await browser.click(other(BUTTON))
      await untilState('verified', other(GATE))
      await untilState('expired', other(GATE))
      assert.equal(await browser.evaluate(`${other(GATE)}.token`), null)
      await browser.click(other(BUTTON))
      await untilState('verified', other(GATE))
      await eventually(60_000, 'renewed', () => browser.evaluate('seen.length >= 4'))
      const [working, verified, first, second] = await browser.evaluate<string[]>('seen')
      assert.deepEqual([working, verified], ['working', 'verified'])
      assert.notEqual(second, first)
      await assertRedeemed(second, shortLived)
      await assertQuiet(shortLived)
    })

    test('a refused verification is shown, and the button tries again; a service that is away is waited for', async () => {
      gateway.fail({ path: '/verify', answer: NOT_PASSED })
      await open()
      await untilState('failed')
      assert.equal(await browser.evaluate(`${inside('.text')}.textContent`), 'Verification failed')
      assert.equal(await browser.evaluate(VALID), false)
      gateway.fail({ path: '/challenge', answer: AWAY })
      await browser.click(BUTTON)
      await untilState('verified')
      assert.equal(gateway.count('GET /challenge'), 3)
      assert.equal(await browser.evaluate(VALID), true)
      await assertQuiet()
    })

    for (const [name, path] of Object.entries(OLD_LIBRARIES))
      test(`a page with ${name}.js: the form arrives with its token`, async () => {
        pages.add('/library.js', readFileSync(path))
        await open({ attributes: 'auto="submit"', more: '<script src="/library.js"></script>' })
        await browser.click(SEND)
        await assertPosted()
      })

    test('a mistake of the page is shown in the element and told on the console', async () => {
      await open({ siteKey: 'site_0000000000000000000000' })
      await untilState('failed')
      assert.match(String(await browser.evaluate(`${inside('.detail')}.textContent`)), /\nsite-unknown$/)
      assert.match(String(await browser.evaluate(COMPLAINTS)), /^pow-gate: .*\(site-unknown\)/)
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
          await browser.evaluate(`${SEND}.remove() ?? ${field}.focus()`)
          await browser.press(KEYS.enter)
        }
        await assertPosted()
      })

    test('a form of a site with HashWX: its token is redeemed', async () => {
      await open({ siteKey: hashwxSite.siteKey })
      const { mode, solver, token } = await browser.evaluate<Verified>(VERIFIED)
      assert.deepEqual([mode, solver], ['frame', 'wasm'])
      await assertRedeemed(token, { ...surroundings, site: hashwxSite })
      await assertQuiet()
    })

    for (const [puzzle, kernel, solver] of [
      ['sha256', 'simd.wasm', 'wasm'],
      ['sha256', 'scalar.wasm', 'wasm'],
      ['sha256', undefined, 'script'],
      ['hashwx', 'hashwx.wasm', 'wasm'],
      ['hashwx', undefined, 'script'],
    ] as const)
      test(`${puzzle}: the worker finds the counters of the vectors: ${kernel ?? solver}`, async () => {
        await open({ attributes: 'auto="off"' })
        const expected = WORKERS[puzzle].proofs.map(({ counter }) => [solver, counter])
        assert.deepEqual(await browser.evaluate(solvedByWorker(puzzle, kernel)), expected)
      })
  })
}
