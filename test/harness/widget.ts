/**
 * The set-up of browser tests of the widget: a browser, a service, a proxy in front, a site with the widget, and pages. Strict
 * pages have a policy that allows only what one mode of the widget needs (docs/reference/widget.md, "Strict pages").
 */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { WidgetManifest } from '../../src/http/assets.ts'
import { NONCE_TIME_ZERO_MS } from '../../src/protocol/proof.ts'
import type { SiteOptions } from '../../src/sites/sites.ts'
import {
  axeViolations,
  openBrowser,
  openedPages,
  openPage,
  type Visit,
  type VisitOptions,
} from './browser.ts'
import { PageServer, REPORT_PATH } from './browser-pages.ts'
import { type Fault, type FaultyAnswer, FaultyProxy } from './browser-proxy.ts'
import { eventually, PATIENCE_MS } from './eventually.ts'
import { EASY, TestService, type TestSite } from './service.ts'

/** All but the browser. */
interface Surroundings {
  readonly service: TestService
  /** With the lowest difficulty. */
  readonly site: TestSite
  /** Pages and backends call the service through this proxy, which tests tell to fail. */
  readonly gateway: FaultyProxy
  readonly pages: PageServer
}

export interface Stage extends Surroundings {
  /** It does not tell pages that a program controls it. */
  readonly browser: Browser
  /** Opens the page `/form`: see `addWidgetPage`. */
  readonly open: (attributes?: string, options?: OpenOptions) => Promise<{ page: Page; notes: Visit }>
}

export interface OpenOptions extends Omit<WidgetPage, 'attributes'> {
  readonly visit?: VisitOptions
  /** Meets the page's next requests: one, if `times` does not say more. */
  readonly fault?: Fault
  /** The visitor's address; by default one that is new. */
  readonly from?: string
  readonly inBrowser?: Browser
  readonly host?: string
}

/**
 * What the tests of a file share; it ends with the file. Each `open` first empties what gateway and pages have recorded, so counts
 * are of the latest page. After each test all faults end and all pages of all browsers are closed: an open page renews its token
 * after four minutes, in the middle of another test.
 *
 * @param env settings of the service, which trusts the gateway's X-Forwarded-For
 */
export async function startStage(env: Record<string, string> = {}): Promise<Stage> {
  const [browser, surroundings] = [await openBrowser(), await startSurroundings(env)]
  const { gateway, pages } = surroundings
  afterEach(async () => {
    gateway.recover()
    for (const page of await openedPages()) await closePage(page)
  })
  let addresses = 0
  const newAddress = () => `198.51.100.${1 + (addresses++ % 250)}`
  const open: Stage['open'] = (attributes = '', options = {}) => {
    const { inBrowser = browser, host, fault, from = newAddress(), ...page } = options
    gateway.clientAddress = from
    if (fault !== undefined) gateway.fail(fault)
    addWidgetPage(surroundings, { attributes, ...page })
    return visit(inBrowser, `${pages.origin(host)}/form`, options.visit)
  }
  return { ...surroundings, browser, open }
}

export async function startSurroundings(
  env: Record<string, string>,
  options: SiteOptions = {},
): Promise<Surroundings> {
  const service = await TestService.start('embedded', { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', ...env })
  const site = await service.createSite({ difficulty: EASY, ...options })
  const [gateway, pages] = [await FaultyProxy.start(service.port), await PageServer.start()]
  pages.add('/listen.js', LISTENER)
  pages.add('/powgate-worker.js', await (await fetch(`${service.url}/widget/worker.js`)).text())
  return { service, site, gateway, pages }
}

interface FormOptions {
  /** Stands after the form. */
  readonly script?: string
  readonly lang?: string
  /** Attributes of the form. */
  readonly form?: string
  /** Stand before the button. */
  readonly fields?: string
}

/** A page with one element in a form, which starts on load unless the attributes say otherwise. */
export function formPage(attributes: string, options: FormOptions = {}): string {
  const { script = '', lang = 'en', form = '', fields = '' } = options
  return `<!doctype html><html lang="${lang}" dir="${/^(ar|fa|he|ur)/.test(lang) ? 'rtl' : 'ltr'}"><head><title>A form</title>
<meta charset="utf-8"><meta name="color-scheme" content="light dark"></head>
<body><main><h1>A form</h1><form action="/received" method="post" ${form}>
<label>Name <input name="name" value="Ada"></label>
<pow-gate ${/\bauto=/.test(attributes) ? '' : 'auto="load"'} ${attributes}></pow-gate>${fields}<button>Send</button></form></main>${script}</body></html>`
}

export interface WidgetPage extends FormOptions {
  /** The key of the stage's site if left out. */
  readonly siteKey?: string
  readonly attributes?: string
  /** Violations are reported to the page's server. */
  readonly policy?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Stands before the widget's script. */
  readonly more?: string
  /** A text of the page's HTML, and what takes its place. */
  readonly edit?: readonly [string, string]
}

/** Adds the page `/form` with an element, and forgets what gateway and pages have recorded. A `script` replaces the usual ones. */
export function addWidgetPage({ site, gateway, pages }: Surroundings, page: WidgetPage): void {
  const { siteKey = site.siteKey, attributes = '', policy, headers, more = '', edit = ['', ''] } = page
  const { script = `<script src="/listen.js"></script>${more}${scriptTag(gateway)}` } = page
  const whole = formPage(`site-key="${siteKey}" ${attributes}`, { ...page, script })
  assert.ok(whole.includes(edit[0]), `the page has no ${edit[0]}`)
  const html = whole.replace(...edit)
  const reported = `${policy}; report-uri ${REPORT_PATH}; form-action 'self'`
  pages.add('/form', html, policy === undefined ? headers : { 'Content-Security-Policy': reported })
  pages.reports.length = pages.forms.length = pages.requests.length = gateway.requests.length = 0
}

export const scriptTag = (gateway: FaultyProxy, attributes = '') =>
  `<script src="${gateway.origin()}/widget.js" ${attributes}></script>`

const DIST = new URL('../../dist/widget/', import.meta.url)
const builtText = (fileName: string) => readFileSync(new URL(fileName, DIST), 'utf8')

/** A file of the build: its text, and its path at the service, which has a hash. */
export function builtFile(name: string): { readonly text: string; readonly path: string } {
  const { files }: WidgetManifest = JSON.parse(builtText('manifest.json'))
  const { fileName } = files.find(file => file.name === name)!
  return { text: builtText(fileName), path: `/widget/${fileName}` }
}

/** The tag of a page that takes the script of this build alone. */
export function pinnedTag(gateway: FaultyProxy, attributes = ''): string {
  const { integrity }: WidgetManifest = JSON.parse(builtText('manifest.json'))
  const src = gateway.origin() + builtFile('widget.js').path
  return `<script src="${src}" integrity="${integrity}" crossorigin ${attributes}></script>`
}

/** From now on the service's file begins with `code`, as if somebody had taken the service over: the rest works. */
export function alter(gateway: FaultyProxy, name: string, code: string): void {
  const { path, text } = builtFile(name)
  const answer = { status: 200, headers: { 'Content-Type': 'text/javascript' }, body: code + text }
  gateway.fail({ path, times: 100, answer })
}

/**
 * An answer of /challenge whose search does not end during a test, with one thread (`threads="1"` or `solver="page"`): none of
 * its first 35 million counters has even 28 zero bits. A challenge of the service, however hard, may be solved soon by luck.
 * @param lifetimeMs the widget computes it from the issue time in the nonce, of zeros here, and does not ask its own clock
 */
export function endless(lifetimeMs = 600_000): FaultyAnswer {
  const expiresAt = NONCE_TIME_ZERO_MS + lifetimeMs
  return { status: 200, body: { nonce: '0'.repeat(32), difficulty: 32, algorithm: 'sha256', expiresAt } }
}

/** For tests that move the page's clock on. (Within a task that clock stands still; workers have the real one.) */
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
export async function untilState(page: Page, state: string, selector = 'pow-gate'): Promise<void> {
  const attached = { state: 'attached', timeout: PATIENCE_MS } as const
  await page.locator(`${selector}:state(${state})`).first().waitFor(attached)
}

/** Resolves with what was opened, once the page's element is in a state. */
export async function inState<Opened extends { readonly page: Page }>(
  state: 'verified' | 'failed',
  opened: Promise<Opened>,
): Promise<Opened> {
  await untilState((await opened).page, state)
  return opened
}

/** Presses the element's own button. */
export const press = (page: Page, name: 'Verify' | 'Try again') => page.getByRole('button', { name }).click()

export async function verify(page: Page): Promise<void> {
  await press(page, 'Verify')
  await untilState(page, 'verified')
}

export const errorCode = (page: Page) => page.evaluate(`${GATE}.error?.code`)
export const tokenOf = (page: Page) => page.evaluate(`${GATE}.token`) as Promise<string>

/** The fields of the one form that the site's backend gets. */
export async function posted({ pages }: Pick<Surroundings, 'pages'>): Promise<URLSearchParams> {
  const fields = await eventually(PATIENCE_MS, 'the form arrives', () => pages.forms[0])
  assert.equal(pages.forms.length, 1)
  return fields
}

/**
 * Closes a page and its context. Chromium may never answer while a page is being left. So the document is replaced first,
 * because it could renew its token in the middle of another test.
 */
export async function closePage(page: Page): Promise<void> {
  const atMost = (work: Promise<unknown>) =>
    Promise.race([work, new Promise(resolve => setTimeout(resolve, 1000))])
  await atMost(page.goto('about:blank').catch(() => {}))
  await atMost(page.context().close())
}

/** Asserts that the page recorded no violation and no error. (Failed requests are ignored: a stopped worker causes one.) */
export function assertQuiet({ violations, consoleErrors, pageErrors }: Visit, about = ''): void {
  const quiet = { violations: [], consoleErrors: [], pageErrors: [] }
  assert.deepEqual({ violations, consoleErrors, pageErrors }, quiet, about)
}

/** Asserts that axe-core finds nothing in the element. */
export async function assertAccessible(page: Page, what: string, selector = 'pow-gate'): Promise<void> {
  assert.deepEqual(await axeViolations(page, selector), [], what)
}

/** Forbids everything but the service's script and endpoints, and the page's icon. @param more `; directive`, several times */
export const strictPolicy = (service: string, more: string, scripts = '') =>
  `default-src 'none'; img-src 'self'; script-src 'self' ${service}${scripts}; connect-src ${service}${more}`

/** Mode, solver, attributes and policy of each page. @param service the service's origin for pages */
export function strictPages(service: string) {
  const strict = (types: "'none'" | 'powgate', more: string, scripts?: string) =>
    strictPolicy(service, `${more}; require-trusted-types-for 'script'; trusted-types ${types}`, scripts)
  return [
    ['worker', 'wasm', 'worker-src="/powgate-worker.js"', strict('powgate', "; worker-src 'self'")],
    ['frame', 'wasm', '', strict("'none'", `; frame-src ${service}`)],
    ['blob', 'wasm', 'solver="blob"', strict('powgate', '; worker-src blob:', " 'wasm-unsafe-eval'")],
    ['page', 'script', 'solver="page"', strict("'none'", '')],
  ] as const
}

/** What the event `verified` tells, in part. */
export interface Verified extends Record<'token' | 'mode' | 'solver', string> {
  readonly threads: number
  readonly tries: number
}

/** Expressions for a page that `addWidgetPage` adds. */
export const GATE = "document.querySelector('pow-gate')"
/** A promise of `Verified`, which rejects if the verification fails. */
export const VERIFIED = 'window.verified'
/** What was written to the console as an error, thrown or rejected, by the page itself. */
export const COMPLAINTS = 'window.complaints'

/** Puts the form into a dialog, and opens it. */
export const openInDialog = (page: Page) =>
  page.evaluate(`{
    const dialog = document.body.appendChild(document.createElement('dialog'))
    dialog.append(document.forms[0])
    dialog.showModal()
  }`)

/** Begins a verification, and does not wait for its end. */
export const execute = (page: Page) => page.evaluate(`void ${GATE}.execute()`)

/** Tests move the page's clock on by these: a token lives five minutes, so it has been replaced by then, or has expired. */
export const RENEWED_MS = 250_000
export const EXPIRED_MS = 350_000

/** Verifies, and lets the token expire: from the state `idle`, on a page that was opened WITH_CLOCK. */
export async function expire(page: Page): Promise<void> {
  await execute(page)
  await untilState(page, 'verified')
  await page.clock.fastForward(EXPIRED_MS)
  await untilState(page, 'expired')
}

/** The script /listen.js, which makes the two values. */
const LISTENER = `{
${COMPLAINTS} = []
const note = text => ${COMPLAINTS}.push(String(text))
addEventListener('error', ({ message }) => note(message))
addEventListener('unhandledrejection', ({ reason }) => note(reason))
const { error } = console
console.error = (...parts) => { note(parts.join(' ')); error(...parts) }
${VERIFIED} = new Promise((resolve, reject) => {
  ${GATE}.addEventListener('verified', ({ detail }) => resolve(detail))
  ${GATE}.addEventListener('failed', ({ detail }) => reject(JSON.stringify(detail)))
})
${VERIFIED}.catch(() => {})
}`

/** A hash of what the widget in the demo looks like, for docs/images/widget.png. */
export function widgetSources(): string {
  const hash = createHash('sha256')
  for (const path of ['widget/view.ts', 'widget/texts.ts', 'demo/demo.css', 'demo/pages.ts'])
    hash.update(readFileSync(new URL(`../../src/${path}`, import.meta.url)))
  return hash.digest('hex').slice(0, 16)
}
