/** The tools of the browser tests report what they should. A tool that reports nothing would let every test pass. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axeViolations, openBrowser, openPage } from '../harness/browser.ts'
import { PageServer, REPORT_PATH } from '../harness/browser-pages.ts'
import { FaultyProxy } from '../harness/browser-proxy.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/ports.ts'

const PATIENCE_MS = 60_000

const [browser, pages] = [await openBrowser(), await PageServer.start()]

const html = (body: string) => `<!doctype html><html lang="en"><title>A page</title>${body}</html>`
const STRICT = `default-src 'none'; script-src 'self'; report-uri ${REPORT_PATH}`

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
