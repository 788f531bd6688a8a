/** Everything that a browser test of the widget needs: a browser, a service, a proxy before it, and a site with the widget. */

import { afterEach } from 'node:test'
import type { Browser } from 'playwright-core'
import type { SiteOptions } from '../../src/sites/sites.ts'
import { openBrowser } from './browser.ts'
import { PageServer } from './browser-pages.ts'
import { FaultyProxy } from './browser-proxy.ts'
import { TestService, type TestSite } from './service.ts'
import { closePage } from './widget-pages.ts'

/** All but the browser. */
export interface Surroundings {
  readonly service: TestService
  /** With the lowest difficulty. */
  readonly site: TestSite
  /** The address that pages use as the service's. */
  readonly gateway: FaultyProxy
  readonly pages: PageServer
}

export interface Stage extends Surroundings {
  /** Does not appear to be controlled by a program. */
  readonly browser: Browser
}

/**
 * Closes all pages after each test.
 *
 * @param env settings of the service, which trusts the gateway's X-Forwarded-For
 */
export async function startStage(env: Record<string, string> = {}): Promise<Stage> {
  const browser = await openBrowser()
  afterEach(async () => {
    for (const page of browser.contexts().flatMap(context => context.pages())) await closePage(page)
  })
  return { ...(await startSurroundings(env)), browser }
}

export async function startSurroundings(
  env: Record<string, string>,
  options: SiteOptions = {},
): Promise<Surroundings> {
  const service = await TestService.start('embedded', { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', ...env })
  const site = await service.createSite({ difficulty: { base: 16, min: 16, max: 28 }, ...options })
  const gateway = await FaultyProxy.start(service.port)
  return { service, site, gateway, pages: await PageServer.start() }
}
