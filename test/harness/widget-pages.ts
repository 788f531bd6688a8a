/** Pages with the widget, for the browser tests. */

import assert from 'node:assert/strict'
import type { Browser, Page } from 'playwright-core'
import { openPage, type Visit, type VisitOptions } from './browser.ts'
import { axeViolations } from './browser-axe.ts'

/** A page with one element in a form. */
export function formPage(
  attributes: string,
  options: { script?: string; lang?: string; form?: string } = {},
): string {
  const { script = '', lang = 'en', form = '' } = options
  return `<!doctype html><html lang="${lang}" dir="${/^(ar|he)/.test(lang) ? 'rtl' : 'ltr'}"><head><title>A form</title>
<meta charset="utf-8"><meta name="color-scheme" content="light dark"></head>
<body><main><h1>A form</h1><form action="/received" method="post" ${form}>
<label>Name <input name="name" value="Ada"></label>
<pow-gate ${attributes}></pow-gate><button>Send</button></form></main>${script}</body></html>`
}

/** For tests that move the page's clock on. (Within a task, and in workers, that clock stands still or is the real one.) */
export const WITH_CLOCK: VisitOptions = { prepare: page => page.clock.install() }

/** Opens a page, and records what goes wrong in it. */
export async function visit(
  browser: Browser,
  url: string,
  options: VisitOptions = {},
): Promise<{ page: Page; notes: Visit }> {
  const notes = await openPage(browser, url, options)
  return { page: notes.page, notes }
}

/** Waits until an element is in a state. */
export async function untilState(
  page: Page,
  state: string,
  selector = 'pow-gate',
  ms = 20_000,
): Promise<void> {
  await page.locator(`${selector}[state=${state}]`).first().waitFor({ state: 'attached', timeout: ms })
}

const PATIENCE_MS = 1000

/**
 * Closes a page and its context. Chromium may never answer while a page is being left. So the document is replaced first,
 * because it could renew its token in the middle of another test.
 */
export async function closePage(page: Page): Promise<void> {
  const atMost = (work: Promise<unknown>) =>
    Promise.race([work, new Promise(resolve => setTimeout(resolve, PATIENCE_MS))])
  await atMost(page.goto('about:blank').catch(() => {}))
  await atMost(page.context().close())
}

/** Asserts that the page recorded no violation and no error. (Failed requests are ignored: a stopped worker causes one.) */
export function assertQuiet({ violations, consoleErrors, pageErrors }: Visit, about = ''): void {
  assert.deepEqual(
    { violations, consoleErrors, pageErrors },
    { violations: [], consoleErrors: [], pageErrors: [] },
    about,
  )
}

/** Asserts that axe-core finds nothing, best practices included. */
export async function assertAccessible(page: Page, what: string, selector = 'pow-gate'): Promise<void> {
  assert.deepEqual(await axeViolations(page, { selector, hasBestPractices: true }), [], what)
}
