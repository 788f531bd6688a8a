/**
 * A real browser: Debian's Chromium, or its headless shell, which is the same engine without a browser's windows and takes half of the
 * processor time of a page. Pages record everything that goes wrong, and axe-core examines them.
 */

import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { PolicyReport } from './browser-pages.ts'
import { PATIENCE_MS } from './eventually.ts'
import { leftovers } from './processes.ts'
import { words } from './values.ts'

/** Chromium sets `navigator.webdriver` when a program controls it. Most tests want a browser that looks like a person's. */
const LIKE_A_PERSON = '--disable-blink-features=AutomationControlled'

/** What a person's Chromium has and the shell lacks, as the widget's signals see it. */
const NOT_A_SHELL = `if (!('chrome' in window)) {
  const has = (owner, name, value) => Object.defineProperty(owner, name, { get: () => value, configurable: true })
  has(window, 'chrome', {})
  has(Navigator.prototype, 'plugins', ['PDF Viewer'])
  has(window.Notification ?? {}, 'permission', 'default')
}`

/** What Playwright disables (`disabledFeatures` of its chromiumSwitches.ts): Chromium obeys the last such flag alone, which is ours. */
const PLAYWRIGHT_DISABLES = words(
  'AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose HttpsUpgrades HttpsFirstBalancedModeAutoEnable LensOverlay',
  'MediaRouter PaintHolding ThirdPartyStoragePartitioning AvoidCorsURLLoaderRestartOnRedirect OptimizationHints AimEnabled',
  'NetworkTimeServiceQuerying PreconnectToSearch',
)

/**
 * The process that Chromium starts beside each page for the next one (0.2 s of processor time), and its own toolbar, drawn by web pages
 * though nobody sees it: that took half of the time of a page.
 */
const COSTLY = words(
  'SpareRendererForSitePerProcess InitialWebUI WebUIToolbarProcessOverheadExperiment PreloadTopChromeWebUI WebUIOmniboxPopup WebUIOmniboxAimPopup',
)

/** Stops Chromium's own requests to other hosts. (Root can start Chromium because Playwright turns its sandbox off.) */
const QUIET = [
  `--disable-features=${[...PLAYWRIGHT_DISABLES, ...COSTLY].join()}`,
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Flags for WebGPU on a machine without a graphics card: SwiftShader computes it on the CPU. */
export const WEBGPU_IN_SOFTWARE = [
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--enable-features=Vulkan',
  '--use-vulkan=swiftshader',
  '--use-angle=swiftshader',
  '--ignore-gpu-blocklist',
]

interface BrowserOptions {
  /** Chromium itself, which most bots start and measurements of a GPU need; false: its shell. Each function has its default. */
  readonly isWhole?: boolean
  /** Names that resolve to 127.0.0.1; `*` stands for any characters. A page of such an origin is no secure context. */
  readonly hosts?: readonly string[]
  readonly isAutomated?: boolean
  readonly flags?: readonly string[]
}

const opened = new Map<string, Promise<Browser>>()

/** One browser for all tests of a file with the same options; closed when the file ends. It is the shell, unless it is automated. */
export function openBrowser(options: BrowserOptions = {}): Promise<Browser> {
  const key = JSON.stringify(options)
  const launched = opened.get(key) ?? launchBrowser({ isWhole: options.isAutomated ?? false, ...options })
  if (!opened.has(key)) leftovers.add({ stop: async () => (await launched).close() })
  opened.set(key, launched)
  return launched
}

export async function openedPages(): Promise<Page[]> {
  const browsers = await Promise.all(opened.values())
  return browsers.flatMap(browser => browser.contexts()).flatMap(context => context.pages())
}

/** A browser that the caller closes. It is Chromium itself, unless `isWhole` is false. */
export function launchBrowser(options: BrowserOptions = {}): Promise<Browser> {
  const { hosts = ['*.example'], isAutomated = false, isWhole = true, flags = [] } = options
  const rules = hosts.map(host => `MAP ${host} 127.0.0.1`).join(', ')
  const args = [...QUIET, `--host-resolver-rules=${rules}`, ...(isAutomated ? [] : [LIKE_A_PERSON]), ...flags]
  const program = isWhole ? 'chromium' : 'chromium-headless-shell'
  return chromium.launch({ executablePath: pathOf(program), args, timeout: PATIENCE_MS })
}

/** Makes the browser start its WebGL renderer, which is slow on a busy machine: the widget waits at most 300 ms for its name. */
export async function startRenderer(browser: Browser): Promise<void> {
  const page = await browser.newPage()
  const isThere = await page.evaluate("document.createElement('canvas').getContext('webgl') !== null")
  if (isThere !== true) throw new Error('this Chromium draws no WebGL')
  await page.close()
}

function pathOf(program: string): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const path = folders.map(folder => join(folder, program)).find(existsSync)
  if (path === undefined)
    throw new Error(`${program} is not on the path: install with 'apt-get install ${program}'`)
  return path
}

/** A page, with everything that went wrong in it and in all its frames. Workers' violations go to REPORT_PATH (browser-pages.ts). */
export class Visit {
  readonly page: Page
  readonly violations: PolicyReport[] = []
  readonly consoleErrors: string[] = []
  /** Uncaught exceptions and rejected promises. */
  readonly pageErrors: string[] = []
  readonly failedRequests: string[] = []

  constructor(page: Page) {
    this.page = page
    page.on('console', message => {
      if (message.type() === 'error') this.consoleErrors.push(message.text())
    })
    page.on('pageerror', error => this.pageErrors.push(error.message))
    page.on('requestfailed', request => {
      this.failedRequests.push(`${request.method()} ${request.url()}: ${request.failure()?.errorText}`)
    })
  }

  /** Everything recorded so far, a line each: for `assert.deepEqual(visit.troubles, [])`. */
  get troubles(): string[] {
    return [
      ...this.violations.map(({ directive, blocked, document }) => `${directive}: ${blocked} in ${document}`),
      ...this.consoleErrors,
      ...this.pageErrors,
      ...this.failedRequests,
    ]
  }

  async close(): Promise<void> {
    await this.page.context().close()
  }
}

export interface VisitOptions extends BrowserContextOptions {
  readonly prepare?: (page: Page) => Promise<unknown>
}

/** Opens an address in a new profile: no cookies, no cache. */
export async function openPage(
  browser: Browser,
  url: string,
  { prepare, ...options }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(PATIENCE_MS)
  const visit = new Visit(await context.newPage())
  await context.exposeBinding('noteViolation', (_, violation: PolicyReport) => {
    visit.violations.push(violation)
  })
  await context.addInitScript(OBSERVE)
  await visit.page.addInitScript(NOT_A_SHELL) // before `prepare`, whose scripts watch what this defines
  await prepare?.(visit.page)
  await visit.page.goto(url)
  return visit
}

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** Wall clock, and CPU time of the thread, in us. */
  readonly ts: number
  readonly tdur?: number
  readonly args: { readonly name?: string }
}

/**
 * The longest task that began on a page's main thread after the page had set this mark (`performance.mark`), in ms of CPU time: on a
 * busy machine other processes preempt a task.
 */
type LongestTaskSince = (mark: string) => number

/** Traces a browser's tasks. @returns ends the trace */
export async function traceTasks(browser: Browser): Promise<() => Promise<LongestTaskSince>> {
  await browser.startTracing(undefined, { categories: ['toplevel', 'blink.user_timing', '__metadata'] })
  return async () => {
    const events: readonly TraceEvent[] = JSON.parse(String(await browser.stopTracing())).traceEvents
    return mark => {
      const { pid, ts } = events.find(({ name }) => name === mark)!
      const { tid } = events.find(
        event => event.name === 'thread_name' && event.pid === pid && event.args.name === 'CrRendererMain',
      )!
      const times = events.filter(event => event.pid === pid && event.tid === tid && event.ts >= ts)
      return Math.max(...times.map(({ tdur = 0 }) => tdur)) / 1000
    }
  }
}

/** Runs in every document before its own scripts. */
const OBSERVE = `addEventListener('securitypolicyviolation', event => noteViolation({
  directive: event.effectiveDirective,
  blocked: event.blockedURI,
  document: event.documentURI,
}))`

const AXE = new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)

/** WCAG 2.2 A and AA, and what axe-core's authors advise besides. */
const RULES = words('wcag2a wcag2aa wcag21a wcag21aa wcag22aa best-practice')

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly target: unknown; readonly failureSummary?: string }[]
  }[]
  readonly passes: readonly unknown[]
}

/**
 * What axe-core finds against RULES, a line each. Throws if there was nothing to check.
 *
 * @param selector the part of the page to check, shadow trees included
 */
export async function axeViolations(page: Page, selector = 'html'): Promise<string[]> {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(readFileSync(AXE, 'utf8'))
  // axe would wait for an answer of frames into which it was not loaded.
  const options = JSON.stringify([{ include: [selector] }, { runOnly: RULES, iframes: false }])
  const { violations, passes } = (await page.evaluate(`axe.run(...${options})`)) as AxeResults
  if (violations.length + passes.length === 0) throw new Error(`axe found nothing to look at in ${selector}`)
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} at ${JSON.stringify(target)}: ${failureSummary}`),
  )
}
