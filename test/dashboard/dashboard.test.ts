/** The dashboard of a running service under load: it shows exactly what was sent, and reports when the service stops. */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser, openPage } from '../harness/browser.ts'
import { Client, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { call, freshAddress } from '../harness/http.ts'
import { startObserved } from '../harness/metrics.ts'
import { EASY } from '../harness/service.ts'

/** Numbers come every ten seconds; a busy machine gets some more. */
const PATIENCE_MS = 60_000

const { service, adminUrl: admin } = await startObserved('embedded', {
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: '5',
  POWGATE_DEPLOYMENT: 'staging',
})
const browser = await openBrowser()

const client = new Client(service.url)
const [shop, forum, quiet] = await Promise.all(
  ['shop.example', 'forum <b>.example', 'quiet.example'].map(async name => {
    const difficulty = EASY
    return { name, ...(await service.createSite({ name, difficulty })), from: freshAddress() }
  }),
)

/**
 * What the page shows of all sites and of one, after the requests that follow here. A funnel has challenges, verifications, those
 * that passed, and redemptions: five visits (one of them at the forum), then at the forum two that fail and four challenges alone,
 * so 5 + 2 + 4 challenges. How numbers are computed is in history.test.ts; here each has to come from the right place.
 */
const ALL = { funnel: [11, 7, 5, 1], refusals: { 'token-used': 1, 'rate-limited': 1, 'site-unknown': 1 } }
const FORUM = { funnel: [7, 3, 1, 0], refusals: { 'rate-limited': 1 } }
const REASONS = { swiftShader: 2, webdriver: 2 }
const [token] = await Promise.all(
  [shop, shop, shop, quiet, forum].map(site => client.token(site!.siteKey, site!)),
)
for (const status of [200, 400])
  assert.equal((await client.verifyToken(shop!.apiKey, { token }, shop!)).status, status)
const environment = { ...HONEST_ENVIRONMENT, webdriver: true, swiftShader: true }
for (let count = 0; count < 2; count++) {
  const from = { from: freshAddress() } // a second failure of one address would have a third reason
  const solution = await client.solved(forum!.siteKey, from, { environment })
  assert.equal((await client.verify(forum!.siteKey, solution, from)).json.passed, false)
}
for (const status of [200, 200, 200, 200, 429])
  assert.equal((await client.challenge(forum!.siteKey, forum!)).status, status)
await client.challenge('site_0000000000000000000000')

async function data(query: string) {
  const answer = await call(`${admin}/dashboard/data.json?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0)

test('an unknown range is refused, an unknown site has no numbers; / leads to the page, /metrics names the deployment', async () => {
  const wrong = await call(`${admin}/dashboard/data.json?range=1y`)
  assert.deepEqual([wrong.status, wrong.json], [400, { error: 'range: expected 30m or 24h' }])
  const unknown = await data('range=30m&site=%3Cscript%3E')
  assert.equal(total(unknown.traffic.challenges), 0)
  assert.ok(Math.abs(unknown.nowMs - Date.now()) < 600_000)
  const start = await call(`${admin}/`)
  assert.deepEqual([start.status, start.headers.location], [302, 'dashboard'])
  assert.match((await call(`${admin}/metrics`)).text, /^powgate_workers\{deployment="staging"\} 2$/m)
})

test('the page embeds and runs nothing that is not ours', async () => {
  for (const path of ['/dashboard', '/dashboard/app.js', '/dashboard/app.css', '/grafana.json']) {
    const { status, headers } = await call(`${admin}${path}`)
    const policy = String(headers['content-security-policy'])
    assert.equal(status, 200, path)
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'/)
    assert.doesNotMatch(policy, /unsafe|\*/)
    assert.equal(headers['x-content-type-options'], 'nosniff')
  }
})

async function open(t: TestContext) {
  const visit = await openPage(browser, `${admin}/dashboard`, {
    viewport: { width: 1280, height: 900 },
    timezoneId: 'Asia/Kolkata',
    prepare: page => page.route(new RegExp(`^(?!${admin}/)`), route => route.abort()),
  })
  t.after(() => visit.page.context().close())
  await visit.page.locator('body[data-loaded]').waitFor()
  return visit
}

/** The counts that a panel's rows show, by their names. */
function rowsOf(page: Page, title: string): Promise<Record<string, number>> {
  return page.evaluate(`Object.fromEntries(
    [...document.querySelectorAll('.panel')].find(panel => panel.querySelector('h3').textContent === ${JSON.stringify(title)})
      .querySelectorAll('.bars li').values().map(row => [row.querySelector('.title').textContent, parseInt(row.querySelector('.count').textContent)]))`)
}

const funnelOf = async (page: Page) => (await page.locator('.funnel b').allTextContents()).map(Number)

test('the page shows what was sent, for all sites and for the one that is chosen', async t => {
  const isCounted = async () => {
    const { challenges, passed, failed, redeemed, refused } = (await data('range=30m')).traffic
    // 11 challenges, 7 verifications, 1 redemption and 3 refusals.
    return total([challenges, passed, failed, redeemed, refused].flat()) >= 22
  }
  await eventually(PATIENCE_MS, 'all requests counted', isCounted)
  const visit = await open(t)
  const { page } = visit
  assert.deepEqual(await funnelOf(page), ALL.funnel)
  assert.deepEqual(await rowsOf(page, 'Why requests were refused'), ALL.refusals)
  assert.deepEqual(await rowsOf(page, 'Why verifications failed or lost score'), REASONS)
  assert.deepEqual(await rowsOf(page, 'Limits hit'), { '/challenge per address and site': 1 })
  const busiest = Object.keys(await rowsOf(page, 'Busiest sites')).sort()
  assert.equal(busiest.join(), [forum, quiet, shop].map(site => site!.name).join())

  await page.getByRole('button', { name: forum!.name }).click()
  const isOfForum = async () => (await funnelOf(page))[0] === FORUM.funnel[0]
  await eventually(PATIENCE_MS, 'the numbers of one site', isOfForum)
  assert.deepEqual(await funnelOf(page), FORUM.funnel)
  assert.deepEqual(await rowsOf(page, 'Why requests were refused'), FORUM.refusals)
  assert.match(page.url(), new RegExp(`site=${forum!.siteKey}`))
  assert.ok(await page.locator('.panel', { hasText: 'Latency' }).getByText('all sites').first().isVisible())

  await page.getByText('24 h', { exact: true }).click()
  await eventually(PATIENCE_MS, 'the other range', () => /range=24h/.test(page.url()))
  await page.goto(`${admin}/dashboard?range=24h&site=%3Cscript%3E`)
  await page.getByText('There is no site <script>.').waitFor()
  await page.getByRole('combobox', { name: 'Site' }).selectOption({ index: 0 })
  const isOfAll = async () => (await funnelOf(page))[0] === ALL.funnel[0]
  await eventually(PATIENCE_MS, 'all sites again', isOfAll)
  const troubles = visit.troubles.filter(trouble => !trouble.endsWith('ERR_ABORTED'))
  assert.deepEqual(troubles, []) // page.goto() above may end a poll, which is none
})

test('by keyboard: a plot is a slider over time, whose moment all plots show', async t => {
  await eventually(PATIENCE_MS, 'two steps', async () => (await data('range=30m')).times.length >= 2)
  const { page } = await open(t)
  const plot = page.getByRole('slider', { name: 'Requests: moment' })
  await plot.focus()
  await page.keyboard.press('Home')
  const first = await plot.getAttribute('aria-valuetext')
  assert.match(first!, /^\d\d:\d\d:\d\d: challenges [\d.]+\/s, verified [\d.]+\/s/)
  assert.equal(await plot.getAttribute('aria-valuenow'), '0')
  const moments = await page.locator('#plots time').allTextContents()
  assert.equal(new Set(moments).size, 1, 'all plots tell of the same moment')
  const other = page.getByRole('slider', { name: 'Difficulty: moment' })
  assert.ok((await other.getAttribute('aria-valuetext'))!.startsWith(moments[0]!))
  // The clock is the viewer's.
  const [hour, minute] = moments[0]!.split(':')
  const { times } = await data('range=30m')
  const local = new Date(times[0] + 330 * 60_000) // India is 5 h 30 min ahead of UTC
  assert.deepEqual([Number(hour), Number(minute)], [local.getUTCHours(), local.getUTCMinutes()])
  // Every ten seconds a step is added, which moves all others: if that came in between, once more.
  for (let attempt = 0; attempt < 3; attempt++) {
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    if ((await plot.getAttribute('aria-valuenow')) === '1') break
  }
  assert.equal(await plot.getAttribute('aria-valuenow'), '1')
  assert.equal(await page.locator('.pointer line').count(), await page.locator('[role=slider]').count())
  await page.keyboard.press('Escape')
  assert.equal(await page.locator('.pointer line').count(), 0)
  await page.route('**/data.json?*', async route => {
    const json = await (await route.fetch()).json()
    json.times[0] -= 7_200_000 // as of a service that stood still: two hours are far left of the axis
    await route.fulfill({ json })
  })
  await page.reload()
  await page.locator('body[data-loaded]').waitFor()
  await plot.press('Home')
  const leftOf = async (line: string) => Number(await page.locator(line).first().getAttribute('x1'))
  assert.ok((await leftOf('.pointer line')) >= (await leftOf('line.axis')), 'on the axis')
})

test('a tab in the background asks nothing, and does not say that nothing answers', async t => {
  const { page } = await open(t)
  await page.clock.install()
  await page.reload()
  await page.locator('body[data-loaded]').waitFor()
  const hide = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })`)
  await hide(true)
  let asked = 0
  page.on('request', request => request.url().includes('/data.json') && asked++)
  await page.clock.fastForward(60_000)
  assert.deepEqual([asked, await page.locator('.stale').count()], [0, 0])
  await hide(false)
  await page.clock.fastForward(60_000)
  await eventually(PATIENCE_MS, 'a tab in the foreground asks', () => asked > 0)
})

test('a page whose service is gone says so, and comes back with it', async t => {
  const { page } = await open(t)
  const problem = page.locator('.problem')
  // On a busy machine it may say that things are slow.
  assert.deepEqual(await page.locator('.problem.bad').allTextContents(), [])
  await service.end('SIGKILL') // so this is the last test: it forgets what was sent
  await problem.filter({ hasText: 'No contact' }).waitFor({ timeout: PATIENCE_MS })
  assert.match(await page.locator('#freshness').innerText(), /^Updated at \d\d:\d\d:\d\d$/)
  assert.match(await page.locator('.tile').first().innerText(), /no contact/)
  assert.equal((await funnelOf(page))[0], ALL.funnel[0], 'the last numbers stay')
  await service.boot()
  await problem.filter({ hasText: 'No contact' }).waitFor({ state: 'detached', timeout: PATIENCE_MS })
  assert.equal((await funnelOf(page))[0], 0)
  await problem.filter({ hasText: 'No requests in this time' }).waitFor({ timeout: PATIENCE_MS })
  await page.goto(`${admin}/dashboard?site=${shop!.siteKey}`)
  const chosen = page.locator('#site option:checked').filter({ hasText: 'shop.example · site_' })
  await chosen.waitFor({ state: 'attached', timeout: PATIENCE_MS })
})
