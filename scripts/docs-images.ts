/**
 * Makes the pictures in docs/images/: the widget in the demo page, and the dashboard of a service under a small load.
 *
 *   npm run docs:images              after five minutes of load
 *   npm run docs:images -- 60        after 60 seconds
 *   npm run docs:images -- widget    the widget alone
 *
 * widget.sources beside the widget's picture names what it shows, so that a test tells when the picture is old.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { launchBrowser, openPage } from '../test/harness/browser.ts'
import { Client, FINGERPRINT, HONEST_ENVIRONMENT } from '../test/harness/client.ts'
import { freshAddress } from '../test/harness/http.ts'
import { freePort } from '../test/harness/ports.ts'
import { EASY, TestService, type TestSite } from '../test/harness/service.ts'
import { widgetSources } from '../test/harness/widget.ts'

const LOAD_SECONDS = 300
/** The load rises and falls once in this time. */
const WAVE_MS = 100_000
const images = new URL('../docs/images/', import.meta.url).pathname
const adminPort = await freePort()
const service = await TestService.start('embedded', {
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: '5',
  POWGATE_ADMIN_PORT: String(adminPort),
  POWGATE_DEMO: 'on',
  POWGATE_LIMIT_REDEEM_API_KEY: '10000',
})
const client = new Client(service.url)

const DRIVEN = { ...HONEST_ENVIRONMENT, webdriver: true, swiftShader: true }

/** One visitor, from the challenge to so many redemptions, of which the first succeeds. */
async function visit({ siteKey, apiKey }: TestSite, redemptions: number, environment = HONEST_ENVIRONMENT) {
  const from = { from: freshAddress() }
  const own = { fingerprintHash: FINGERPRINT, environment }
  const { token } = (await client.verify(siteKey, await client.solved(siteKey, from, own), from)).json
  for (let count = 0; count < redemptions; count++)
    await client.verifyToken(apiKey, { token, expectedIp: from.from }, { from: freshAddress() })
}

/** Visitors of three sites. Most pass, some fail, some are refused, and some never come back with their token. */
async function load(seconds: number): Promise<void> {
  const sites = await Promise.all(
    ['shop.example', 'forum.example', 'news.example'].map(name =>
      service.createSite({ name, difficulty: EASY }),
    ),
  )
  const startedAtMs = performance.now()
  const sinceMs = () => performance.now() - startedAtMs
  const visitors = sites.map(async (site, index) => {
    for (let round = 0; sinceMs() < seconds * 1000; round++) {
      for (let visits = index; visits < 3; visits++) await visit(site, 1)
      if (round % 3 === index) await visit(site, 0, DRIVEN)
      if (round % 7 === index) await visit(site, 0)
      if (round % 13 === index) await visit(site, 2)
      const from = freshAddress()
      if (round % 40 === index)
        for (let count = 0; count < 7; count++) await client.challenge(site.siteKey, { from })
      const pauseMs = 900 + 700 * Math.sin((sinceMs() / WAVE_MS) * 2 * Math.PI)
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  })
  await Promise.all(visitors)
}

const browser = await launchBrowser()
try {
  const isWidgetAlone = process.argv[2] === 'widget'
  if (!isWidgetAlone) await load(Number(process.argv[2] ?? LOAD_SECONDS))
  mkdirSync(images, { recursive: true })
  const options = (width: number, height: number) => ({
    colorScheme: 'light' as const,
    viewport: { width, height },
  })

  const { page: demo } = await openPage(browser, `${service.url}/demo`, options(680, 620))
  // The picture shows a form as any site has it, without what only the demo offers.
  await demo.locator('fieldset').evaluate(choice => choice.remove())
  await demo.fill('#name', 'Ada')
  await demo.fill('#message', 'Is this table still for sale?')
  await demo.locator('#message').blur()
  await demo.locator('pow-gate:state(verified)').waitFor()
  await demo.locator('#form').screenshot({ path: `${images}widget.png` })
  writeFileSync(`${images}widget.sources`, `${widgetSources()}\n`)

  if (!isWidgetAlone) {
    const url = `http://127.0.0.1:${adminPort}/dashboard`
    const { page: dashboard } = await openPage(browser, url, options(1200, 640))
    await dashboard.locator('body[data-loaded]').waitFor()
    await dashboard.screenshot({ path: `${images}dashboard.png` })
  }
} finally {
  await browser.close()
  await service.stop()
}
// The HTTP client of the tests keeps its connections.
process.exit(0)
