import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { reportHtml, scaleOf } from '../../bench/report/html.ts'
import { reportText } from '../../bench/report/publish.ts'
import { aimsText, type Report, type ReportPart } from '../../bench/report/report.ts'
import { axeViolations, openBrowser } from '../harness/browser.ts'
import { temporaryDir } from '../harness/temporary.ts'

const folder = temporaryDir('report')

const HOSTILE = `<script>alert("1")</script> & 'quoted'`

const AIMS = [
  { about: 'costs', isMet: true, found: '4 us' },
  { about: 'garbage', isMet: false, found: '9 bytes' },
]

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
    kind: 'lines',
    title: 'Delay',
    xTitle: 'minutes',
    yTitle: 'seconds',
    series: ['now', 'before', 'between', 'a fourth'].map((name, index) => ({
      name,
      points: [0, 10, 30].map(x => ({ x, y: (index + 1) * x * 123.456 })),
    })),
  },
  aimsText(AIMS),
  { kind: 'lines', title: 'No figures', xTitle: 'x', yTitle: 'y', series: [] },
]

const REPORT: Report = { title: 'A report', intro: 'What was measured.', parts: PARTS }

test('a page shows every figure, and the terminal the tables', () => {
  const html = reportHtml(REPORT)
  for (const text of ['10.5 (10.1-11.2)', '>14,810<', '>a fourth<']) assert.ok(html.includes(text), text)
  assert.equal(html.match(/<figure>/g)?.length, 3)
  assert.match(html, /<svg [^>]*role="img" aria-labelledby="(part-\d-image)"><title id="\1">/)
  assert.equal(html.match(/<polyline/g)?.length, 4)
  assert.match(html, /<p>There is nothing to show\.<\/p>/)
  assert.match(html, /<p>One paragraph\.<br>Its second line\.<\/p>\n<p>Another with &lt;b&gt;no markup/)
  assert.doesNotMatch(html, /NaN|Infinity|undefined/)
  const text = reportText(REPORT)
  assert.match(
    text,
    /^One paragraph\.\n[\s\S]*\n\nCosts of the endpoints\n\nendpoint +worker us\/request {2}notes/,
  )
  assert.match(
    text,
    /\n\/verify +20\.5\n\naim: costs: met, 4 us\naim: garbage: NOT met, 9 bytes\n\nWhat was measured\.$/,
  )
})

test('coordinates follow the figures, and ticks are round numbers around all of them', () => {
  const points = [1, 10, 30].map(value => ({ x: value, y: value }))
  const lines = {
    kind: 'lines',
    title: 'l',
    xTitle: 'x',
    yTitle: 'y',
    series: [{ name: 's', points }],
  } as const
  const [, path] = /<polyline points="([^"]+)"/.exec(reportHtml({ ...REPORT, parts: [lines] }))!
  const [first, second, third] = path!.split(' ').map(pair => pair.split(',').map(Number))
  for (const axis of [0, 1]) {
    const ratio = (third![axis]! - first![axis]!) / (second![axis]! - first![axis]!)
    assert.ok(Math.abs(ratio - 29 / 9) < 0.02, `${ratio}`)
  }
  assert.ok(third![1]! < first![1]!, 'larger is higher')
  assert.deepEqual(scaleOf([0, 3, 97]).ticks, [0, 20, 40, 60, 80, 100])
  assert.deepEqual(scaleOf([0.1, 0.3]).ticks, [0.1, 0.15, 0.2, 0.25, 0.3])
  for (const values of [[1e-9, 3e-9], [5], [0, 0], [0.07, 123_456_789]]) {
    const { ticks, position } = scaleOf(values)
    assert.ok(ticks.length >= 2 && ticks.length <= 14, `${values}: ${ticks}`)
    for (const value of values) assert.ok(position(value) > -1e-9 && position(value) < 1 + 1e-9, `${value}`)
  }
})

test('whatever is passed in is text, never markup', () => {
  const series = [{ name: HOSTILE, points: [{ x: 1, y: 2 }] }]
  const html = reportHtml({
    title: HOSTILE,
    intro: HOSTILE,
    parts: [
      { kind: 'text', text: HOSTILE },
      { kind: 'table', title: HOSTILE, columns: [{ title: HOSTILE, align: 'left' }], rows: [[HOSTILE]] },
      { kind: 'lines', title: HOSTILE, xTitle: HOSTILE, yTitle: HOSTILE, series },
    ],
  })
  assert.doesNotMatch(html, /<script|"1"|'quoted'/)
  assert.ok(html.split('&lt;script&gt;alert(&quot;1&quot;)').length > 12)
})

test('the page is accessible, loads nothing, and fits a phone, light and dark', async () => {
  const file = join(folder, 'report.html')
  writeFileSync(file, reportHtml(REPORT))
  const browser = await openBrowser()
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({ colorScheme, viewport: { width: 360, height: 740 } })
    const page = await context.newPage()
    const requested: string[] = []
    const complaints: string[] = []
    page.on('request', request => requested.push(request.url()))
    page.on('console', message => complaints.push(message.text()))
    await page.goto(`file://${file}`)
    await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
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
