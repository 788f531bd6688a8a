import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { reportHtml, writeReport } from '../../bench/support/html-report.ts'
import { figureText, scaleOf } from '../../bench/support/plot-scale.ts'
import type { Report, ReportPart } from '../../bench/support/report.ts'
import { openBrowser } from '../harness/browser.ts'
import { axeViolations } from '../harness/browser-axe.ts'

const folder = mkdtempSync(join(tmpdir(), 'powgate-report-'))
after(() => rmSync(folder, { recursive: true }))

const HOSTILE = `<script>alert("1")</script> & 'quoted'`

const PARTS: readonly ReportPart[] = [
  { kind: 'text', text: 'One paragraph.\nIts second line.\n\nAnother with <b>no markup</b>.' },
  {
    kind: 'table',
    title: 'Costs of the endpoints',
    columns: [
      { title: 'endpoint', align: 'left' },
      { title: 'worker us/request', align: 'right' },
      { title: 'notes that make the table wider than a phone', align: 'left' },
    ],
    rows: [
      ['/challenge', '10.5 (10.1-11.2)', 'a note of some length that does not fit'],
      ['/verify', '20.5', ''],
    ],
  },
  {
    kind: 'bars',
    title: 'CPU time of a worker',
    unit: 'us',
    bars: [
      { label: 'embedded', median: 20, min: 18, max: 25, group: '/challenge' },
      { label: 'redis', median: 15, min: 15, max: 15, group: '/challenge' },
      { label: 'redis, with a name that is long on a phone', median: 31, min: 28, max: 44, group: '/verify' },
    ],
  },
  {
    kind: 'bars',
    title: 'Rates',
    unit: 'hashes/s',
    isLog: true,
    bars: [
      { label: 'native', median: 34e6, min: 30e6, max: 35e6 },
      { label: 'WebCrypto', median: 0.28e6, min: 0.25e6, max: 0.3e6 },
      { label: 'nothing', median: 0, min: 0, max: 0 },
    ],
  },
  {
    kind: 'lines',
    title: 'Latency under load',
    xTitle: 'requests per second',
    yTitle: 'milliseconds',
    isLogX: true,
    isLogY: true,
    series: Array.from({ length: 7 }, (_, index) => ({
      name: `series ${index}`,
      points: [300, 3000, 30_000].map(x => ({
        x,
        y: (index + 1) * x ** 0.3,
        min: x ** 0.3,
        max: 9 * x ** 0.3,
      })),
    })),
  },
  {
    kind: 'lines',
    title: 'Cost over difficulty',
    xTitle: 'bits',
    yTitle: 'seconds',
    series: [
      {
        name: 'browser',
        points: [
          { x: 18, y: 0.01 },
          { x: 16, y: 0.002 },
          { x: 28, y: 15 },
        ],
      },
    ],
  },
  { kind: 'lines', title: 'No figures', xTitle: 'x', yTitle: 'y', series: [] },
]

const REPORT: Report = { title: 'A report', intro: 'What was measured.', parts: PARTS }

test('tables and plots show every figure, and say which an axis cannot show', () => {
  const html = reportHtml(REPORT)
  for (const text of ['10.5 (10.1-11.2)', '34,000,000', 'redis: 15 us', 'embedded: 20 (18-25) us', '>28<']) {
    assert.ok(html.includes(text), text)
  }
  assert.equal(html.match(/<figure/g)?.length, 6)
  assert.equal(
    html.match(/<svg [^>]*role="img" aria-labelledby="(part-\d-image)"><title id="\1">/g)?.length,
    4,
  )
  assert.equal(html.match(/<rect [^>]*class="bar"/g)?.length, 5)
  assert.equal(html.match(/<polyline/g)?.length, 8)
  assert.match(html, /<p>1 that the axes cannot show: see the figures\.<\/p>/)
  assert.match(html, /<p>There is nothing to show\.<\/p>/)
  assert.match(html, /<p>One paragraph\.<br>Its second line\.<\/p>\n<p>Another with &lt;b&gt;no markup/)
  assert.doesNotMatch(html, /NaN|Infinity|undefined/)
})

test('coordinates follow the figures', () => {
  const bars = [10, 20, 40].map(value => ({ label: String(value), median: value, min: value, max: value }))
  const html = reportHtml({ ...REPORT, parts: [{ kind: 'bars', title: 'bars', unit: '', bars }] })
  const widths = [...html.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width))
  assert.deepEqual(
    widths.map(width => Math.round((width / widths[0]!) * 100) / 100),
    [1, 2, 4],
  )
  const points = [1, 10, 1000].map(value => ({ x: value, y: value }))
  const lines: ReportPart = {
    kind: 'lines',
    title: 'l',
    xTitle: 'x',
    yTitle: 'y',
    series: [{ name: 's', points }],
  }
  const log = reportHtml({ ...REPORT, parts: [{ ...lines, isLogX: true, isLogY: true }] })
  const [, path] = /<polyline points="([^"]+)"/.exec(log)!
  const [first, second, third] = path!.split(' ').map(pair => pair.split(',').map(Number))
  assert.ok(Math.abs((third![0]! - first![0]!) / (second![0]! - first![0]!) - 3) < 0.01)
  assert.ok(Math.abs((third![1]! - first![1]!) / (second![1]! - first![1]!) - 3) < 0.01)
  assert.ok(third![1]! < first![1]!, 'larger is higher')
})

test('whatever is passed in is text, never markup', () => {
  const point = { x: 1, y: 2 }
  const bar = { label: HOSTILE, median: 1, min: 1, max: 2, group: HOSTILE }
  const html = reportHtml({
    title: HOSTILE,
    intro: HOSTILE,
    parts: [
      { kind: 'text', text: HOSTILE },
      { kind: 'table', title: HOSTILE, columns: [{ title: HOSTILE, align: 'left' }], rows: [[HOSTILE]] },
      { kind: 'bars', title: HOSTILE, unit: HOSTILE, bars: [bar] },
      {
        kind: 'lines',
        title: HOSTILE,
        xTitle: HOSTILE,
        yTitle: HOSTILE,
        series: [{ name: HOSTILE, points: [point] }],
      },
    ],
  })
  assert.doesNotMatch(html, /<script|"1"|'quoted'/)
  assert.ok(html.split('&lt;script&gt;alert(&quot;1&quot;)').length > 15)
})

test('ticks are round numbers around all values, on both kinds of axes', () => {
  assert.deepEqual(scaleOf([3, 97], false, true).ticks, [0, 20, 40, 60, 80, 100])
  assert.deepEqual(scaleOf([0.1, 0.3], false).ticks, [0.1, 0.15, 0.2, 0.25, 0.3])
  assert.deepEqual(scaleOf([16, 28], false).ticks, [16, 18, 20, 22, 24, 26, 28])
  assert.deepEqual(scaleOf([15, 900], true).ticks, [10, 20, 50, 100, 200, 500, 1000])
  assert.deepEqual(scaleOf([2, 70_000], true).ticks, [1, 10, 100, 1000, 10_000, 100_000])
  assert.deepEqual(scaleOf([7], true).ticks, [5, 10])
  for (const isLog of [false, true]) {
    for (const values of [[1e-9, 3e-9], [5], [0.07, 123_456_789], [1e-12, 1e12]]) {
      const { ticks, position } = scaleOf(values, isLog)
      assert.ok(ticks.length >= 2 && ticks.length <= 14, `${values}: ${ticks}`)
      for (const value of values) assert.ok(position(value) > -1e-9 && position(value) < 1 + 1e-9, `${value}`)
    }
  }
  assert.deepEqual(scaleOf([0, 0], false, true).ticks.slice(0, 1), [0])
  assert.equal(figureText(1234.5678), '1,235')
  assert.equal(figureText(0.0012345), '0.001235')
})

test('the page is accessible, loads nothing, and fits a phone, light and dark', async () => {
  const file = join(folder, 'report.html')
  writeReport(file, REPORT)
  assert.equal(readFileSync(file, 'utf8'), reportHtml(REPORT))
  const browser = await openBrowser()
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({
      colorScheme,
      viewport: { width: 360, height: 740 },
      javaScriptEnabled: true,
    })
    const page = await context.newPage()
    const requested: string[] = []
    const complaints: string[] = []
    page.on('request', request => requested.push(request.url()))
    page.on('console', message => complaints.push(message.text()))
    await page.goto(`file://${file}`)
    await page.evaluate(() => {
      const { document } = globalThis as unknown as {
        document: { querySelectorAll(selector: string): Iterable<{ open: boolean }> }
      }
      for (const details of document.querySelectorAll('details')) details.open = true
    })
    assert.deepEqual(requested, [`file://${file}`])
    assert.deepEqual(complaints, [])
    const width = await page.evaluate('document.documentElement.scrollWidth')
    assert.equal(width, 360, 'only tables scroll sideways, each by itself')
    const { POWGATE_SCREENSHOTS: pictures } = process.env
    if (pictures !== undefined) {
      mkdirSync(pictures, { recursive: true })
      writeFileSync(join(pictures, `report-${colorScheme}.png`), await page.screenshot({ fullPage: true }))
    }
    assert.deepEqual(await axeViolations(page, { hasBestPractices: true }), [])
    await context.close()
  }
})

test('a file that cannot be written is told in one line', () => {
  assert.throws(() => writeReport(join(folder, 'missing', 'report.html'), REPORT), {
    name: 'UsageError',
    message: /^--report: cannot write .*missing\/report\.html: ENOENT$/,
  })
})
