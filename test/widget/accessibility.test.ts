/** Every state, in light, dark and forced colours, left to right and right to left: found faultless, and looked at. */

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { ENGLISH, LANGUAGES } from '../../src/widget/texts.ts'
import type { Fault } from '../harness/browser-proxy.ts'
import { assertAccessible, closePage, formPage, untilState, visit } from '../harness/widget-pages.ts'
import { startStage } from '../harness/widget-stage.ts'

/** Where the pictures go that a person looks at; none are made if it is not set. */
const SCREENSHOTS = process.env.POWGATE_SCREENSHOTS

const { browser, service, site, gateway, pages } = await startStage({
  POWGATE_TOKEN_SECONDS: '8',
  POWGATE_DEMO: 'on',
})

let lastAddress = 0

interface Look {
  readonly name: string
  readonly options: BrowserContextOptions
  readonly lang: string
}

const LOOKS: readonly Look[] = [
  { name: 'light', options: { colorScheme: 'light' }, lang: 'en' },
  { name: 'dark', options: { colorScheme: 'dark' }, lang: 'en' },
  { name: 'forced-colours', options: { forcedColors: 'active' }, lang: 'en' },
  { name: 'right-to-left', options: { colorScheme: 'light' }, lang: 'ar' },
  { name: 'long-words', options: { viewport: { width: 320, height: 300 } }, lang: 'de' },
]

async function open({ options, lang }: Look, attributes = '', faults: readonly Fault[] = []) {
  gateway.clientAddress = `198.51.100.${1 + (lastAddress++ % 250)}`
  for (const fault of faults) gateway.fail(fault)
  const script = `<script src="${gateway.origin()}/widget.js"></script>`
  const siteKey = attributes.includes('site-key') ? '' : `site-key="${site.siteKey}"`
  pages.add('/form', formPage(`${siteKey} ${attributes}`, { script, lang }))
  const viewport = { viewport: { width: 420, height: 300 } }
  return visit(browser, `${pages.origin()}/form`, { ...viewport, ...options })
}

async function look(page: Page, name: string): Promise<void> {
  await assertAccessible(page, name)
  const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
  assert.ok((overflow as number) <= 0, `${name}: the page scrolls sideways by ${overflow} px`)
  if (SCREENSHOTS === undefined) return
  mkdirSync(SCREENSHOTS, { recursive: true })
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
}

const limited = {
  status: 429,
  headers: { 'Retry-After': '30' },
  body: { error: 'Too many.', code: 'rate-limited' },
}
const notPassed = { status: 200, body: { token: null, passed: false, expiresAt: null } }

for (const every of LOOKS) {
  test(`axe-core finds nothing in any state: ${every.name}`, async () => {
    const idle = await open(every, 'auto="off"')
    await untilText(idle.page)
    await look(idle.page, `${every.name}-idle`)
    gateway.fail({ path: '/verify', times: 1, delayMs: 1500 })
    await idle.page.locator('pow-gate button').click()
    await untilState(idle.page, 'working')
    await look(idle.page, `${every.name}-working`)
    await untilState(idle.page, 'verified')
    await look(idle.page, `${every.name}-verified`)
    assert.equal(await idle.page.evaluate(`document.querySelector('pow-gate').state`), 'verified')
    await untilState(idle.page, 'expired', 'pow-gate', 15_000)
    await look(idle.page, `${every.name}-expired`)
    await closePage(idle.page)

    const failed = await open(every, '', [{ path: '/verify', times: 1, answer: notPassed }])
    await untilState(failed.page, 'failed')
    await untilText(failed.page)
    await look(failed.page, `${every.name}-failed`)
    await closePage(failed.page)

    const setup = await open(every, 'site-key="site_0000000000000000000000"')
    await untilState(setup.page, 'failed')
    await untilText(setup.page)
    await look(setup.page, `${every.name}-setup`)
    await closePage(setup.page)

    const busy = await open(every, '', [{ path: '/challenge', times: 1, answer: limited }])
    await busy.page.locator('pow-gate .detail:not(:empty)').waitFor()
    await look(busy.page, `${every.name}-busy`)
    await closePage(busy.page)
  })
}

/** The texts of a language come a moment after the element. */
async function untilText(page: Page): Promise<void> {
  const lang = (await page.evaluate('document.documentElement.lang')) as string
  if (lang !== 'en') await page.locator(`pow-gate .box[lang=${lang}]`).waitFor()
}

test('by keyboard: the button is reached, works, and hands the focus on instead of losing it', async () => {
  const { page } = await open(LOOKS[0]!, 'auto="off"')
  await page.locator('input[name=name]').focus()
  await page.keyboard.press('Tab')
  const focused = `document.activeElement.localName + ' ' + (document.activeElement.shadowRoot?.activeElement?.className ?? '')`
  assert.equal(await page.evaluate(focused), 'pow-gate button')
  await page.keyboard.press('Enter')
  await untilState(page, 'verified')
  assert.match((await page.evaluate(focused)) as string, /^pow-gate box/)
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Send')
  await closePage(page)
})

test('assistive technology is told name, role and state, politely', async () => {
  const { page } = await open(LOOKS[0]!, 'auto="off"')
  const group = page.getByRole('group', { name: 'Human verification' })
  await group.waitFor()
  const status = group.getByRole('status')
  assert.equal(await status.textContent(), 'Not verified yet')
  const node = await status.elementHandle()
  await page.getByRole('button', { name: 'Verify' }).click()
  await untilState(page, 'verified')
  // The same node has a new text: only then is it announced.
  assert.equal(await node!.textContent(), 'Verified')
  await closePage(page)
})

test('nothing moves where reduced motion is wanted', async () => {
  for (const [reducedMotion, animations] of [
    ['no-preference', 1],
    ['reduce', 0],
  ] as const) {
    const { page } = await open({ ...LOOKS[0]!, options: { reducedMotion } }, '', [
      { path: '/verify', times: 1, delayMs: 1000 },
    ])
    await untilState(page, 'working')
    const running = await page.evaluate(
      `document.querySelector('pow-gate').shadowRoot.getAnimations().filter(a => a instanceof CSSAnimation).length`,
    )
    assert.equal(running, animations)
    await closePage(page)
  }
})

test('the target of the button is large enough, also at twice the text size', async () => {
  const { page } = await open(LOOKS[0]!, 'auto="off"')
  await page.evaluate(`document.documentElement.style.fontSize = '200%'`)
  const box = (await page.locator('pow-gate button').boundingBox())!
  assert.ok(box.width >= 24 && box.height >= 24)
  await look(page, 'text-200-percent')
  await closePage(page)
})

test('every language has every text, and no other', () => {
  const folder = new URL('../../src/widget/texts/', import.meta.url)
  const files = readdirSync(folder).map(name => name.replace('.json', ''))
  assert.deepEqual(files.sort(), [...LANGUAGES].sort())
  assert.ok(files.length >= 12)
  for (const language of files) {
    const texts: Record<string, string> = JSON.parse(
      readFileSync(new URL(`${language}.json`, folder), 'utf8'),
    )
    assert.deepEqual(Object.keys(texts).sort(), Object.keys(ENGLISH).sort(), language)
    for (const [key, text] of Object.entries(texts)) {
      assert.ok(text.trim() !== '' && text.length < 80, `${language} ${key}`)
      assert.equal(text.includes('{s}'), key === 'wait', `${language} ${key}`)
    }
  }
})

test('the language is the page’s, or the visitor’s; texts can be replaced; English is there without any file', async () => {
  const texts = (language: string): Record<string, string> =>
    JSON.parse(readFileSync(new URL(`../../src/widget/texts/${language}.json`, import.meta.url), 'utf8'))
  const shown = async (look: Look, attributes = 'auto="off"') => {
    const { page } = await open(look, attributes)
    await page.waitForLoadState('networkidle')
    const text = await page.locator('pow-gate .text').textContent()
    const direction = await page.locator('pow-gate .box').getAttribute('dir')
    await closePage(page)
    return [text, direction]
  }
  const page = (lang: string, locale = 'en-GB') => ({ name: '', lang, options: { locale } })
  assert.deepEqual(await shown(page('he-IL')), [texts('he').idle, 'rtl'])
  assert.deepEqual(await shown(page('ja')), [texts('ja').idle, 'ltr'])
  assert.deepEqual(await shown(page('xx', 'fr-CA')), [texts('fr').idle, 'ltr'])
  assert.deepEqual(await shown(page('xx')), [ENGLISH.idle, 'ltr'])
  assert.deepEqual(await shown(page('de'), 'auto="off" lang="es"'), [texts('es').idle, 'ltr'])
  assert.deepEqual(await shown(page('de'), 'auto="off" text-idle="Gleich"'), ['Gleich', 'ltr'])
  gateway.fail({ path: '/widget/texts-ko.json', isDropped: true })
  assert.deepEqual(await shown(page('ko')), [ENGLISH.idle, 'ltr'])
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
    assert.match(result, /Thank you, Ada <b>\./)
    // Drawn in software, which a busy browser may not find out in time.
    assert.match(result, /Score\s+(0\.75|1) /)
    assert.match(result, /Solved from\s+127\.0\.0\.1/)
    assert.match(result, /Solving took .*\s+\d+(\.\d+)? ms/)
    assert.match(result, /Redeeming the token took\s+\d+(\.\d+)? ms/)
    await assertAccessible(page, `demo result ${colorScheme}`, 'html')
    await page.getByRole('button', { name: 'Send the same token again' }).click()
    await page.getByRole('heading', { name: 'Refused' }).waitFor()
    assert.match(await page.locator('#result').innerText(), /token-used/)
    if (SCREENSHOTS !== undefined) {
      await page.screenshot({ path: join(SCREENSHOTS, `demo-${colorScheme}.png`), fullPage: true })
    }
    assert.deepEqual([notes.violations, notes.pageErrors], [[], []])
    // The refusal's status is all there is on the console.
    assert.ok(
      notes.consoleErrors.every(line => /status of 403/.test(line)),
      notes.consoleErrors.join('\n'),
    )
    await closePage(page)
  }
})
