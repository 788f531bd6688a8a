/** A dashboard on a real admin port with a history that the test supplies, and the checks that every page must pass. */

import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { after } from 'node:test'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { startAdminServer } from '../../src/admin/server.ts'
import { dashboardRoutes } from '../../src/dashboard/routes.ts'
import { SiteNames } from '../../src/dashboard/site-names.ts'
import { createLogger } from '../../src/log/logger.ts'
import type { History } from '../../src/metrics/history.ts'
import type { ServiceState } from '../../src/metrics/history-view.ts'
import { axeViolations, openPage } from '../harness/browser.ts'
import { freePort } from '../harness/ports.ts'

export const WELL: ServiceState = {
  version: '0.1.0',
  isHealthy: true,
  isReady: true,
  workers: 2,
  workersRunning: 2,
  workersWithStore: 2,
  sitesLost: 0,
  hosts: ['a', 'b'].map(name => ({ name: `${name}:8080`, version: '0.1.0', startedAt: 0, workers: 2 })),
  differences: [],
  backends: [],
  isProxyUntrusted: false,
  clockApartSeconds: 0.9,
  evictedKeys: 0,
  isReloadDone: true,
  storeCauses: [],
  crashes: 0,
  underWay: 0,
}

const running = new Set<Server>()
after(() => {
  for (const server of running) server.close().closeAllConnections()
})

/** Where it is served. Needs the built page: its script is bundled. */
export async function serveHistory(
  history: History,
  state: () => ServiceState = () => WELL,
): Promise<string> {
  const adminPort = await freePort()
  const supervisor = {
    isHealthy: () => state().isHealthy,
    isReady: () => state().isReady,
    askStats: async () => {},
    workersWanted: () => state().workers,
  }
  const siteNames = new SiteNames(async () => new Map())
  const routes = dashboardRoutes(
    { history, siteNames, state },
    new URL('../../dist/dashboard/', import.meta.url),
  )
  const server = await startAdminServer(
    { adminHost: '127.0.0.1', adminHosts: [], adminPort },
    supervisor,
    routes,
    createLogger('silent'),
  )
  running.add(server!)
  return `http://127.0.0.1:${adminPort}`
}

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

/** Opens a page in light or dark, on a desktop or a phone: found faultless. */
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
