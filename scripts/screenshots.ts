/**
 * Puts every state of the widget on one page that a person looks at: screenshots/index.html, and a picture of each language.
 *
 *   npm run screenshots              in English, German, Arabic and Japanese
 *   npm run screenshots -- sk bn     in other languages
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { launchBrowser, type VisitOptions } from '../test/harness/browser.ts'
import { type Fault, FaultyProxy } from '../test/harness/browser-proxy.ts'
import { UNLIMITED } from '../test/harness/service.ts'
import {
  endless,
  execute,
  expire,
  formPage,
  GATE,
  startSurroundings,
  untilState,
  visit,
  WITH_CLOCK,
} from '../test/harness/widget.ts'

const folder = new URL('../screenshots/', import.meta.url).pathname
const languages = process.argv.length > 2 ? process.argv.slice(2) : ['en', 'de', 'ar', 'ja']
const WIDTHS = [300, 320]
const LOOKS: Readonly<Record<string, VisitOptions>> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  forced: { forcedColors: 'active' },
}

const { service, site, pages } = await startSurroundings(UNLIMITED)

interface State {
  readonly attributes?: string
  readonly fault?: Fault
  /** From the loaded page to the state. */
  readonly reach: (page: Page) => Promise<unknown>
}

const answer = (status: number, seconds: number) => ({
  status,
  headers: { 'Retry-After': String(seconds) },
  body: { error: 'No.', code: 'unavailable' },
})
const notPassed = { status: 200, body: { token: null, passed: false, expiresAt: null } }
const untilDetail = (page: Page) => page.locator('pow-gate .detail:not(:empty)').waitFor()
const untilHashes = (page: Page) => page.locator('pow-gate .mark[d=""]').waitFor({ state: 'attached' })
/** A hard challenge of the service may be solved soon by luck. */
const HASHING = {
  attributes: 'auto="load" solver="page"',
  fault: { path: '/challenge', answer: endless() },
} as const

const STATES: Readonly<Record<string, State>> = {
  ready: { reach: async () => {} },
  'not verified yet': { attributes: 'auto="off"', reach: async () => {} },
  'before the first hashes': {
    fault: { path: '/challenge', delayMs: 60_000 },
    reach: async page => {
      await execute(page)
      await untilState(page, 'working')
    },
  },
  hashing: { ...HASHING, reach: untilHashes },
  slow: {
    ...HASHING,
    reach: async page => {
      await untilHashes(page)
      await page.clock.fastForward(11_000)
      await page.waitForTimeout(200)
    },
  },
  'waiting for the service': {
    attributes: 'auto="load"',
    fault: { path: '/challenge', answer: answer(503, 30) },
    reach: untilDetail,
  },
  'Send pressed': {
    fault: { path: '/challenge', answer: answer(503, 30) },
    reach: async page => {
      await page.getByRole('button', { name: 'Send' }).click({ noWaitAfter: true })
      await untilDetail(page)
      await page.clock.fastForward(11_000)
      await page.waitForTimeout(200)
    },
  },
  offline: {
    reach: async page => {
      await page.context().setOffline(true)
      await execute(page)
      await page.locator('pow-gate .waiting').waitFor()
    },
  },
  limited: {
    attributes: 'auto="load"',
    fault: { path: '/challenge', answer: answer(429, 3600) },
    reach: page => untilState(page, 'failed'),
  },
  verified: { attributes: 'auto="load"', reach: page => untilState(page, 'verified') },
  failed: {
    attributes: 'auto="load"',
    fault: { path: '/verify', answer: notPassed },
    reach: page => untilState(page, 'failed'),
  },
  'not set up': { attributes: 'site-key="site_0000000000000000000000" auto="load"', reach: untilDetail },
  expired: {
    attributes: 'auto="off"',
    reach: expire,
  },
}

const browser = await launchBrowser()

/** All states in one language and one look. */
async function take(language: string, look: string): Promise<void> {
  const gateway = await FaultyProxy.start(service.port)
  const script = `<script src="${gateway.origin()}/widget.js"></script>`
  for (const [name, { attributes = '', fault, reach }] of Object.entries(STATES)) {
    gateway.recover()
    if (fault !== undefined) gateway.fail({ times: 100, ...fault })
    const key = attributes.includes('site-key') ? '' : `site-key="${site.siteKey}"`
    const auto = attributes.includes('auto=') ? '' : 'auto="focus"'
    const path = `/${language}-${look}`
    pages.add(path, formPage(`${key} ${auto} ${attributes}`, { script, lang: language }))
    const options = { viewport: { width: 360, height: 400 }, ...WITH_CLOCK, ...LOOKS[look] }
    const { page } = await visit(browser, pages.origin() + path, options)
    await page.locator(`pow-gate .box[lang=${language}] .text:not(:empty)`).waitFor()
    await reach(page)
    for (const width of WIDTHS) {
      await page.evaluate(`${GATE}.style.width = '${width}px'`)
      await page
        .locator('form')
        .screenshot({ path: `${folder}${language}/${name}-${look}-${width}.png`, animations: 'disabled' })
    }
    await page.context().close()
  }
}

function sheetOf(language: string): string {
  const columns = Object.keys(LOOKS).flatMap(look => WIDTHS.map(width => `${look}-${width}`))
  const row = (name: string) =>
    `<tr><th>${name}${columns.map(column => `<td><img src="${language}/${name}-${column}.png">`).join('')}`
  return `<h2>${language}</h2><table id="${language}"><tr><td>${columns.map(column => `<th>${column}`).join('')}${Object.keys(STATES).map(row).join('')}</table>`
}

try {
  for (const language of languages) {
    mkdirSync(folder + language, { recursive: true })
    await Promise.all(Object.keys(LOOKS).map(look => take(language, look)))
  }
  writeFileSync(
    `${folder}index.html`,
    `<!doctype html><meta charset="utf-8"><title>The widget</title>${languages.map(sheetOf).join('')}`,
  )
  const { page } = await visit(browser, `file://${folder}index.html`, {
    viewport: { width: 2300, height: 1000 },
  })
  for (const language of languages)
    await page.locator(`#${language}`).screenshot({ path: `${folder}${language}.png` })
} finally {
  await browser.close()
  await service.stop()
}
process.exit(0)
