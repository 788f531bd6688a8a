/**
 * Accessibility of every state of the widget: light, dark and forced colours, left to right and right to left. Its texts in all
 * languages, and the demo page.
 */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { DEFAULT_LANGUAGE, durationText, ENGLISH, LANGUAGES } from '../../src/widget/texts.ts'
import { words } from '../harness/values.ts'
import {
  assertAccessible,
  EXPIRED_MS,
  GATE,
  type OpenOptions,
  press,
  startStage,
  untilState,
  verify,
  visit,
  WITH_CLOCK,
} from '../harness/widget.ts'
import { limited, NOT_PASSED } from './answers.ts'

const { browser, service, gateway, open } = await startStage({ POWGATE_DEMO: 'on' })

type Look = { readonly name: string; readonly options: BrowserContextOptions; readonly lang: string }

const LOOKS: readonly Look[] = [
  { name: 'light', options: { colorScheme: 'light' }, lang: 'en' },
  { name: 'dark', options: { colorScheme: 'dark' }, lang: 'en' },
  { name: 'forced-colours', options: { forcedColors: 'active' }, lang: 'en' },
  { name: 'right-to-left', options: { colorScheme: 'light' }, lang: 'ar' },
  { name: 'long-words', options: { viewport: { width: 320, height: 300 } }, lang: 'de' },
]
const LIGHT = LOOKS[0]!

/** Opens a page whose element verifies on request, unless other attributes are given. */
async function openLook({ options, lang }: Look, attributes = 'auto="off"', more: OpenOptions = {}) {
  const viewport = { width: 420, height: 300 }
  const { page } = await open(attributes, { lang, visit: { viewport, ...WITH_CLOCK, ...options }, ...more })
  await page.locator(`pow-gate .box[lang=${lang}]`).waitFor() // its texts come a moment after the element
  return page
}

/** WCAG 2.2's contrast ratio of two colours, which are given as `getComputedStyle` gives them. */
function contrastOf(...colours: readonly [string, string]): number {
  const [darker, lighter] = colours
    .map(colour => {
      const parts = colour.match(/[\d.]+/g)!.map(part => Number(part) / 255)
      const [red, green, blue] = parts.map(part =>
        part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
      )
      return 0.05 + 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
    })
    .sort((a, b) => a - b)
  return lighter! / darker!
}

/** All that is shown of the box, in colours: part, property, what WCAG asks of it. */
const COLOURED = words(
  'text:color:4.5 detail:color:4.5 button:color:4.5 button:borderTopColor:3 box:borderTopColor:3',
  'track:stroke:3 ring:stroke:3 mark:stroke:3',
)

async function assertContrast(page: Page, about: string): Promise<void> {
  const coloursOf = (part: string, property: string) =>
    `getComputedStyle(${GATE}.shadowRoot.querySelector('.${part}')).${property}`
  const background = (await page.evaluate(coloursOf('box', 'backgroundColor'))) as string
  for (const [part = '', property = '', least] of COLOURED.map(row => row.split(':'))) {
    const contrast = contrastOf((await page.evaluate(coloursOf(part, property))) as string, background)
    assert.ok(contrast >= Number(least), `${about}, ${part}: ${contrast.toFixed(2)} : 1`)
  }
}

/** @param name of the look and the state, such as `dark-idle` */
async function assertGoodLook(page: Page, name: string): Promise<void> {
  await assertAccessible(page, name)
  await assertContrast(page, name)
  const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  assert.ok((overflow as number) <= 0, `${name}: the page scrolls sideways by ${overflow} px`)
}

const BUSY = { fault: { path: '/challenge', answer: limited(30) } }

/** States after the load of the page: name, how it is reached, and what shows that it is there. */
const LOADED: readonly [name: string, OpenOptions, shown: string][] = [
  ['failed', { fault: { path: '/verify', answer: NOT_PASSED } }, 'pow-gate:state(failed)'],
  ['setup', { siteKey: 'site_0000000000000000000000' }, 'pow-gate:state(failed)'],
  ['busy', BUSY, 'pow-gate .detail:not(:empty)'],
]

for (const every of LOOKS) {
  test(`axe-core finds nothing in any state, and no two states have the same icon: ${every.name}`, async () => {
    const icons = new Map<string, unknown>() // outlines, which tell states apart without colour
    const look = async (page: Page, state: string) => {
      await assertGoodLook(page, `${every.name}-${state}`)
      icons.set(state, await page.evaluate(`${GATE}.shadowRoot.querySelector('.mark').getAttribute('d')`))
    }
    const page = await openLook(every)
    await look(page, 'idle')
    const release = gateway.hold('/verify')
    await page.locator('pow-gate button').click()
    await untilState(page, 'working')
    await look(page, 'working')
    release()
    await untilState(page, 'verified')
    await look(page, 'verified')
    await page.clock.fastForward(EXPIRED_MS)
    await untilState(page, 'expired')
    await look(page, 'expired')
    for (const [name, options, shown] of LOADED) {
      const loaded = await openLook(every, '', options)
      await loaded.locator(shown).waitFor({ state: 'attached' })
      await look(loaded, name)
    }
    icons.delete('setup') // a failure like `failed`, from which its text tells it
    assert.deepEqual([icons.size, new Set(icons.values()).size], [6, 6], JSON.stringify([...icons]))
  })
}

test('by keyboard: the button is reached, works, and hands the focus on instead of losing it', async () => {
  const page = await openLook(LIGHT)
  await page.locator('input[name=name]').focus()
  await page.keyboard.press('Tab')
  const focused = `document.activeElement.localName + ' ' + (document.activeElement.shadowRoot?.activeElement?.className ?? '')`
  assert.equal(await page.evaluate(focused), 'pow-gate button')
  await page.keyboard.press('Enter')
  await untilState(page, 'verified')
  assert.match((await page.evaluate(focused)) as string, /^pow-gate box/)
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Send')
})

test('assistive technology is told name, role and state, politely', async () => {
  const page = await openLook(LIGHT)
  const group = page.getByRole('group', { name: 'Human verification' })
  await group.waitFor()
  const status = group.getByRole('status')
  assert.equal(await status.textContent(), 'Not verified yet')
  const node = await status.elementHandle()
  await verify(page)
  // The same node has a new text: only then is it announced.
  assert.equal(await node!.textContent(), 'Verified')
})

test('nothing moves where reduced motion is wanted', async () => {
  for (const reducedMotion of ['no-preference', 'reduce'] as const) {
    const release = gateway.hold('/verify')
    const page = await openLook({ ...LIGHT, options: { reducedMotion } }, '')
    await untilState(page, 'working')
    const running = `${GATE}.shadowRoot.getAnimations().filter(each => each instanceof CSSAnimation).length`
    assert.equal(await page.evaluate(running), reducedMotion === 'reduce' ? 0 : 1)
    release()
    await untilState(page, 'verified')
  }
})

test('the target of the button is large enough, also at twice the text size', async () => {
  const page = await openLook(LIGHT)
  await page.evaluate(`document.documentElement.style.fontSize = '200%'`)
  const box = (await page.locator('pow-gate button').boundingBox())!
  assert.ok(box.width >= 24 && box.height >= 24) // WCAG 2.2, 2.5.8
  await assertGoodLook(page, 'text-200-percent')
  await page.setViewportSize({ width: 360, height: 500 })
  const icon = (await page.locator('pow-gate .icon').boundingBox())!
  const text = (await page.locator('pow-gate .body').boundingBox())!
  const isBeside = text.y < icon.y + icon.height && icon.y < text.y + text.height
  assert.ok(isBeside, 'icon and text stand side by side')
})

const TEXTS = new URL('../../src/widget/texts/', import.meta.url)
const textsOf = (language: string): Record<string, string> =>
  JSON.parse(readFileSync(new URL(`${language}.json`, TEXTS), 'utf8'))

test('every language has every text, and no other', () => {
  const files = readdirSync(TEXTS).map(name => name.replace('.json', ''))
  assert.deepEqual(files.sort(), [...LANGUAGES].sort())
  assert.ok(files.length >= 40) // README.md says so
  for (const language of files) {
    const texts = textsOf(language)
    assert.deepEqual(Object.keys(texts).sort(), Object.keys(ENGLISH).sort(), language)
    for (const [key, text] of Object.entries(texts)) {
      assert.ok(text.trim() !== '' && text.length < 80, `${language} ${key}`)
      assert.equal(text.includes('{s}'), ['wait', 'slow'].includes(key), `${language} ${key}`)
      assert.equal(text.includes('{b}'), key === 'press', `${language} ${key}`)
    }
  }
})

test('times as people say them: seconds up to 90, then minutes, then hours, in the language’s own words and digits', () => {
  /** @param rows language, seconds and text of each; the text's spaces have to be no-break ones */
  const assertTexts = (isAhead: boolean, rows: string) => {
    for (const row of rows.split(', ')) {
      const [, code = '', seconds, text = ''] = /^(\S+) (\d+): (.+)$/.exec(row)!
      const shown = durationText({ ...DEFAULT_LANGUAGE, code }, Number(seconds), isAhead)
      assert.equal(shown, text.replaceAll(' ', '\u00a0'))
    }
  }
  assertTexts(true, 'en 1: in 1 second, en 90: in 90 seconds, en 91: in 2 minutes, en 3541: in 1 hour')
  assertTexts(true, 'en 5401: in 2 hours, ru 21: через 21 секунду, fi 5: 5 sekunnin päästä')
  assertTexts(true, 'sl 2: čez 2 sekundi, zh-Hant 5: 5 秒後')
  assertTexts(false, 'en 150: 2 minutes, pl 30: 30 sekund, lt 120: 2 minutės, fa 5: ۵ ثانیه')
})

test('on a slow line no text comes before its language, and after two seconds the English one', async () => {
  const more = `<script>texts = []
setInterval(() => texts.push(${GATE}.shadowRoot?.querySelector('.text').textContent), 20)</script>`
  const prepare = async (page: Page) => {
    await page.clock.install({ time: 0 })
    await page.clock.pauseAt(1000) // the clock moves only below, however long the machine takes
  }
  for (const [lang, waitMs, shown] of [
    ['th', 1900, textsOf('th').idle],
    ['vi', 2100, ENGLISH.idle],
  ] as const) {
    const release = gateway.hold(`/widget/texts-${lang}.json`)
    const { page } = await open('auto="off"', { lang, more, visit: { prepare } })
    await page.clock.runFor(waitMs)
    if (lang === 'th') release()
    await page.locator('pow-gate .text').filter({ hasText: shown! }).waitFor()
    await page.clock.runFor(20)
    assert.deepEqual(await page.evaluate('[...new Set(texts)].filter(Boolean)'), [shown], lang)
    release()
  }
})

test('the language is the page’s, or the visitor’s; texts can be replaced; English is there without any file', async () => {
  gateway.fail({ path: '/widget/texts-ko.json', isDropped: true })
  /** The page's language, and that of the texts: `xx` has none, and those of `ko` do not load. */
  const byPage = words('he-IL=he zh-TW=zh-Hant iw=he ur-PK=ur bs-Latn-BA=hr no=nb fa-IR=fa ja=ja xx=en ko=en')
  const rows: [lang: string, expected: string, locale?: string, attributes?: string, ownText?: string][] = [
    ...byPage.map(row => row.split('=') as [string, string]),
    ['xx', 'fr', 'fr-CA'], // the visitor's
    ['de', 'es', 'en-GB', 'lang="es"'],
    ['de', 'de', 'en-GB', 'text-idle="Gleich"', 'Gleich'],
  ]
  for (const [lang, expected, locale = 'en-GB', attributes = '', ownText] of rows) {
    const text = ownText ?? (expected === 'en' ? ENGLISH.idle : textsOf(expected).idle!)
    const { page } = await open(`auto="off" ${attributes}`, { lang, visit: { locale } })
    // Texts that take more than two seconds come after the English ones.
    const shown = page.locator('pow-gate .text').filter({ hasText: text })
    await shown.waitFor()
    assert.equal(await shown.textContent(), text, lang)
    const direction = /^(he|ur|fa)$/.test(expected) ? 'rtl' : 'ltr'
    assert.equal(await page.locator('pow-gate .box').getAttribute('dir'), direction, lang)
  }
})

test('the demo page: from the form to the score, in light and dark, without a fault or a violation', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page, notes } = await visit(browser, `${service.url}/demo`, { colorScheme })
    await page.getByLabel('Name').fill('Ada <b>')
    await page.getByLabel('Message').fill('Hello')
    await untilState(page, 'verified')
    await assertAccessible(page, `demo ${colorScheme}`, 'html')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'Accepted' }).waitFor()
    const result = await page.locator('#result').innerText()
    assert.match(result, /Thank you, Ada <b>\./) // the rest is in e2e/demo.test.ts
    await assertAccessible(page, `demo result ${colorScheme}`, 'html')
    await page.getByRole('button', { name: 'Send the same token again' }).click()
    await page.getByRole('heading', { name: 'Refused' }).waitFor()
    assert.match(await page.locator('#result').innerText(), /token-used/)
    await page.route('**/demo/submit', route => route.fulfill({ status: 404, json: { error: 'It is off.' } }))
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('#result:text("Not sent. It is off.")').waitFor()
    assert.deepEqual([notes.violations, notes.pageErrors], [[], []])
    // The refusals' status is all there is on the console.
    for (const line of notes.consoleErrors) assert.match(line, /status of 40[34]/)
  }
})

test('a translator of the page is not overwritten while nothing changes', async () => {
  const page = await openLook(LIGHT, 'auto="off"', BUSY)
  await press(page, 'Verify')
  const shown = page.locator('pow-gate .text')
  await shown.filter({ hasText: 'Too many requests' }).waitFor()
  await page.evaluate(`${GATE}.shadowRoot.querySelector('.text').textContent = 'Occupato'`)
  await page.clock.fastForward(3000)
  await page.waitForTimeout(100)
  assert.equal(await shown.textContent(), 'Occupato')
})
