/** A dashboard page in light and dark, on a desktop and on a phone: found faultless, and kept to be looked at. */

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { openPage } from '../harness/browser.ts'
import { axeViolations } from '../harness/browser-axe.ts'

/** Where the pictures go that a person looks at; none are made if it is not set. */
const SCREENSHOTS = process.env.POWGATE_SCREENSHOTS

const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 360, height: 760 }

export interface Look {
  readonly name: string
  readonly options: BrowserContextOptions
}

export const LOOKS: readonly Look[] = (['light', 'dark'] as const).flatMap(colorScheme => [
  { name: `${colorScheme}-desktop`, options: { colorScheme, viewport: DESKTOP } },
  { name: `${colorScheme}-phone`, options: { colorScheme, viewport: PHONE, hasTouch: true, isMobile: true } },
])

export async function lookAt(browser: Browser, url: string, look: Look, state: string): Promise<void> {
  const about = `${state}, ${look.name}`
  const { origin } = new URL(url)
  const elsewhere: string[] = []
  const visit = await openPage(browser, url, {
    ...look.options,
    prepare: async page =>
      page.on('request', request => {
        const target = request.url()
        if (!target.startsWith(`${origin}/`) && !target.startsWith('data:')) elsewhere.push(target)
      }),
  })
  const { page } = visit
  await page.locator('body[data-loaded]').waitFor()
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  if (SCREENSHOTS !== undefined) {
    mkdirSync(SCREENSHOTS, { recursive: true })
    await page.screenshot({ path: join(SCREENSHOTS, `dashboard-${state}-${look.name}.png`), fullPage: true })
  }
  assert.deepEqual(await axeViolations(page, { hasBestPractices: true }), [], about)
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  assert.equal(overflow, 0, `${about}: the page scrolls sideways`)
  assert.deepEqual(await page.evaluate(CUT_OFF), [], `${about}: texts are cut off`)
  assert.deepEqual(visit.troubles, [], about)
  assert.deepEqual(elsewhere, [], about)
  await visit.close()
}

/** Texts of plots that stick out of them. */
const CUT_OFF = `[...document.querySelectorAll('.canvas svg text')].filter(text => {
  const [inner, outer] = [text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect()]
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1
}).map(text => text.textContent)`
