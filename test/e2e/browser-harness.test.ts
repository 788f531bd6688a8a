/** The tools of the browser tests report what they should. A tool that reports nothing would let every test pass. */

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { axeViolations, openBrowser, openPage } from '../harness/browser.ts'
import { PageServer, REPORT_PATH } from '../harness/browser-pages.ts'
import { FaultyProxy } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { call } from '../harness/http.ts'
import { freePort, listenAnywhere } from '../harness/ports.ts'

const PATIENCE_MS = 60_000

const [browser, pages] = [await openBrowser(), await PageServer.start()]

const html = (body: string) => `<!doctype html><html lang="en"><title>A page</title>${body}</html>`
const STRICT = `default-src 'none'; script-src 'self'; report-uri ${REPORT_PATH}`

test('a quiet page has no troubles, even under the strictest policy', async () => {
  const policy = `${STRICT}; require-trusted-types-for 'script'; trusted-types 'none'`
  pages.add('/quiet', html('<main><h1>Quiet</h1></main>'), { 'Content-Security-Policy': policy })
  const visit = await openPage(browser, `${pages.origin()}/quiet`)
  assert.deepEqual(await axeViolations(visit.page), [])
  await visit.page.waitForFunction(() => true)
  assert.deepEqual(visit.troubles, [])
  assert.deepEqual(pages.reports, [])
})

test('a violation is seen in the page, in a frame of another origin, and in a report', async () => {
  const frame = `${pages.origin('localhost')}/frame`
  const policy = `${STRICT}; frame-src ${pages.origin('localhost')}`
  pages.add('/frame', html('<img src="/refused.png" alt="">'), { 'Content-Security-Policy': STRICT })
  pages.add('/page', html(`<script>1</script><iframe src="${frame}" title="A frame"></iframe>`), {
    'Content-Security-Policy': policy,
  })
  const visit = await openPage(browser, `${pages.origin()}/page`)
  const expected = [
    { directive: 'img-src', blocked: `${pages.origin('localhost')}/refused.png`, document: frame },
    { directive: 'script-src-elem', blocked: 'inline', document: `${pages.origin()}/page` },
  ]
  const seen = (list: readonly { directive: string }[]) =>
    list.toSorted((a, b) => a.directive.localeCompare(b.directive))
  await eventually(PATIENCE_MS, 'two violations', () => visit.violations.length >= 2)
  await eventually(PATIENCE_MS, 'two reports', () => pages.reports.length >= 2)
  assert.deepEqual(seen(visit.violations), expected)
  assert.deepEqual(seen(pages.reports.splice(0)), expected)
  await eventually(PATIENCE_MS, 'the console tells of them too', () => visit.troubles.length > 2)
})

test('a long task, an exception and a request without an answer are seen', async () => {
  const proxy = await FaultyProxy.start(await freePort())
  proxy.isOffline = true
  pages.add(
    '/busy.js',
    `const end = performance.now() + 120
     while (performance.now() < end);
     fetch('${proxy.origin()}/challenge')`,
  )
  pages.add('/busy', html('<script src="/busy.js"></script>'))
  const visit = await openPage(browser, `${pages.origin()}/busy`)
  assert.ok((await eventually(PATIENCE_MS, 'a long task', () => visit.longestTaskMs())) >= 120)
  await eventually(PATIENCE_MS, 'an exception', () => visit.pageErrors.length > 0)
  await eventually(PATIENCE_MS, 'a failed request', () => visit.failedRequests.length > 0)
  assert.deepEqual(visit.pageErrors, ['Failed to fetch'])
  assert.match(visit.failedRequests.join(), /^GET http:.*\/challenge: net::ERR_EMPTY_RESPONSE$/)
})

test('a posted form is kept, and hosts make origins that are no secure context', async () => {
  pages.add(
    '/form',
    html('<form action="/sent?x" method="post"><input name="a" value="b &"><button>Send</button></form>'),
  )
  const visit = await openPage(browser, `${pages.origin('site.example')}/form`)
  assert.equal(await visit.page.evaluate('isSecureContext'), false)
  assert.equal(await visit.page.evaluate('navigator.webdriver'), false)
  await visit.page.getByRole('button').click()
  await visit.page.waitForURL('**/sent?x')
  assert.deepEqual(
    pages.forms.map(({ path, fields }) => [path, fields.get('a')]),
    [['/sent', 'b &']],
  )
  const safe = await openPage(browser, `${pages.origin('localhost')}/form`)
  assert.equal(await safe.page.evaluate('isSecureContext'), true)
})

test('axe sees what people cannot use, inside shadow trees too', async () => {
  pages.add(
    '/hard.js',
    `document.querySelector('div').attachShadow({ mode: 'open' }).innerHTML =
      '<button></button><p style="color: #aaa; background: #bbb">Faint</p>'`,
  )
  pages.add('/hard', html('<main><div></div></main><script src="/hard.js"></script>'))
  const { page } = await openPage(browser, `${pages.origin()}/hard`)
  const found = (await axeViolations(page)).map(line => line.split(' ', 1)[0])
  assert.deepEqual(found.toSorted(), ['button-name', 'color-contrast'])
  const more = await axeViolations(page, { hasBestPractices: true })
  assert.ok(more.some(line => line.startsWith('page-has-heading-one')))
  await assert.rejects(axeViolations(page, { selector: 'no-such-element' }))
})

/** A service that tells whom it takes the browser for. */
async function startEcho(): Promise<number> {
  const echo = createServer((message, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*').end(message.headers['x-forwarded-for'])
  })
  after(() => echo.close())
  return listenAnywhere(echo)
}

test('a proxy answers, drops, delays and forwards as it is told, each as often as it is told', async () => {
  const proxy = await FaultyProxy.start(await startEcho())
  pages.add('/empty', html(''))
  const { page } = await openPage(browser, `${pages.origin()}/empty`)
  const ask = () =>
    page.evaluate(async url => {
      const response = await fetch(url).catch(() => undefined)
      return response && [response.status, response.headers.get('Retry-After'), await response.text()]
    }, `${proxy.origin()}/challenge?x`)
  const path = '/challenge'
  assert.deepEqual(await ask(), [200, null, '198.51.100.1'])
  const answer = { status: 503, headers: { 'Retry-After': '7' }, body: { code: 'busy' } }
  proxy.fail({ path, times: 2, answer })
  proxy.fail({ path: /^\/ch/, isDropped: true })
  proxy.fail({ path: '/verify', isDropped: true })
  proxy.fail({ path, answer: { status: 200, isWithoutCors: true } })
  proxy.fail({ path, clientAddress: '198.51.100.2', delayMs: 150 })
  for (let count = 0; count < 2; count++) assert.deepEqual(await ask(), [503, '7', '{"code":"busy"}'])
  assert.equal(await ask(), undefined, 'dropped')
  assert.equal(await ask(), undefined, 'not readable')
  const askedMs = performance.now()
  assert.deepEqual(await ask(), [200, null, '198.51.100.2'])
  assert.ok(performance.now() - askedMs >= 145)
  proxy.clientAddress = '2001:db8::1'
  assert.deepEqual(await ask(), [200, null, '2001:db8::1'])
  assert.equal(proxy.count('GET /challenge'), 7, 'Chromium does not try again by itself')
  proxy.isOffline = true
  assert.equal(await ask(), undefined, 'offline')
  proxy.recover()
  assert.deepEqual(await ask(), [200, null, '2001:db8::1'])
})

test('a service that is away is a gateway error without CORS', async () => {
  const proxy = await FaultyProxy.start(await freePort())
  assert.equal((await call(`${proxy.origin()}/challenge`)).status, 502)
})
