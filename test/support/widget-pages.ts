/** Pages with the widget in a real browser: the browser, the sites that embed it, and a way to the service that fails on demand. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { freshAddress } from './http.ts'

const closers: (() => unknown)[] = []
// Here and not where it is opened: a hook that is added inside another hook belongs to that one.
after(async () => {
  for (const close of closers) await close()
})

/** Chromium must look like a person's where a test is not about that. */
const LIKE_A_PERSON = '--disable-blink-features=AutomationControlled'

const QUIET = [
  '--no-sandbox', // the tests may run as root
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A name that is no loopback name gives a page that is no secure context.
  '--host-resolver-rules=MAP *.example 127.0.0.1',
]

/** Closed when the test file ends. */
export async function openBrowser(flags: readonly string[] = [LIKE_A_PERSON]): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: [...QUIET, ...flags] })
  closers.push(() => browser.close())
  return browser
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createServer(handle).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

const portOf = (server: Server) => (server.address() as AddressInfo).port

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export interface SitePage {
  readonly html: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A site that embeds the widget. What is posted to it, and what violation reports it gets, is noted. */
export class EmbeddingSite {
  readonly posts: URLSearchParams[] = []
  readonly reports: string[] = []
  readonly #pages = new Map<string, SitePage>()
  #server!: Server

  static async start(): Promise<EmbeddingSite> {
    const site = new EmbeddingSite()
    site.#server = await listen((message, response) => void site.#answer(message, response))
    return site
  }

  /** @param host any name ending in `.example` leads here too */
  origin(host = '127.0.0.1'): string {
    return `http://${host}:${portOf(this.#server)}`
  }

  add(path: string, page: SitePage): void {
    this.#pages.set(path, page)
  }

  async #answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = message.url!.split('?')[0]!
    const body = await bodyOf(message)
    if (path === '/csp-reports') this.reports.push(body.toString())
    else if (message.method === 'POST') this.posts.push(new URLSearchParams(body.toString()))
    const page = this.#pages.get(path)
    const isThere = page !== undefined || message.method === 'POST' || path === '/favicon.ico'
    const type = path.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8'
    response.writeHead(isThere ? 200 : 404, { 'Content-Type': type, ...page?.headers })
    response.end(page?.html ?? '<title>received</title>')
  }
}

/** What a gateway does to the next requests of a path. */
export interface Fault {
  readonly path: string
  /** How many requests it is done to. */
  times: number
  /** Answers in the service's place; without it, the connection is cut. */
  readonly answer?: {
    readonly status: number
    readonly headers?: Readonly<Record<string, string>>
    readonly body: object
  }
  /** Passes it on after a wait. */
  readonly delayMs?: number
  /** Passes it on as from another address. */
  readonly address?: string
  /** Passes it on, and cuts the connection instead of giving the answer back. */
  readonly losesAnswer?: boolean
}

/** Between the browser and the service, as a proxy that the service trusts. */
export class Gateway {
  /** What the service takes the browser's address for. */
  address = freshAddress()
  readonly requests: { readonly method: string; readonly path: string }[] = []
  readonly #faults: Fault[] = []
  #server!: Server

  static async start(servicePort: number): Promise<Gateway> {
    const gateway = new Gateway()
    gateway.#server = await listen((message, response) => void gateway.#pass(message, response, servicePort))
    return gateway
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.#server)}`
  }

  fail(fault: Fault): void {
    this.#faults.push(fault)
  }

  /** How often a path was asked for, preflights apart. */
  count(path: string): number {
    return this.requests.filter(({ method, path: asked }) => asked === path && method !== 'OPTIONS').length
  }

  async #pass(message: IncomingMessage, response: ServerResponse, port: number): Promise<void> {
    const path = message.url!
    const method = message.method!
    this.requests.push({ method, path })
    const fault = this.#faults.find(({ path: failing, times }) => failing === path && times > 0)
    const body = await bodyOf(message)
    if (fault !== undefined && method !== 'OPTIONS') {
      fault.times--
      const { delayMs, address: other, losesAnswer = false } = fault
      const passesOn = delayMs !== undefined || other !== undefined || losesAnswer
      if (fault.answer === undefined && !passesOn) return void message.socket.destroy()
      if (delayMs !== undefined) await new Promise(resolve => setTimeout(resolve, delayMs))
      if (fault.answer !== undefined) {
        const cors = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Retry-After' }
        response.writeHead(fault.answer.status, { ...cors, ...fault.answer.headers })
        return void response.end(JSON.stringify(fault.answer.body))
      }
    }
    const isFaulty = fault !== undefined && method !== 'OPTIONS'
    const from = isFaulty ? (fault.address ?? this.address) : this.address
    const headers = { ...message.headers, 'x-forwarded-for': from }
    const onward = request({ host: '127.0.0.1', port, path, method, headers }, answer => {
      if (isFaulty && fault.losesAnswer) return void answer.resume().on('end', () => message.socket.destroy())
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => message.socket.destroy())
    onward.end(body)
  }
}

/** What went on in a page besides what it shows. */
export interface Notes {
  readonly violations: string[]
  readonly consoleErrors: string[]
  readonly pageErrors: string[]
}

/** Runs in each document before its own scripts. */
const OBSERVE = `
  window.longTasksMs = []
  new PerformanceObserver(list => {
    for (const { duration } of list.getEntries()) longTasksMs.push(duration)
  }).observe({ type: 'longtask', buffered: true })
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => {
    console.info('violation: ' + effectiveDirective + ' ' + blockedURI)
  })`

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  before?: (page: Page) => Promise<unknown>,
): Promise<{ page: Page; notes: Notes }> {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  const notes: Notes = { violations: [], consoleErrors: [], pageErrors: [] }
  page.on('console', message => {
    if (message.text().startsWith('violation: ')) notes.violations.push(message.text())
    if (message.type() === 'error') notes.consoleErrors.push(message.text())
  })
  page.on('pageerror', error => notes.pageErrors.push(error.message))
  await page.addInitScript(OBSERVE)
  await before?.(page)
  await page.goto(url)
  return { page, notes }
}

/** Closes a page and its context; while a page is being left, Chromium may never answer to that. */
export async function closePage(page: Page): Promise<void> {
  const patience = new Promise(resolve => setTimeout(resolve, 1000))
  await Promise.race([page.context().close(), patience])
}

/** Waits until an element is in a state. */
export async function untilState(
  page: Page,
  state: string,
  selector = 'pow-gate',
  ms = 20_000,
): Promise<void> {
  await page.locator(`${selector}[state=${state}]`).first().waitFor({ state: 'attached', timeout: ms })
}

/** The longest task of the page's main thread so far, in milliseconds; 0 if none took 50 ms. */
export function longestTaskMs(page: Page): Promise<number> {
  return page.evaluate('Math.max(0, ...longTasksMs)')
}

const AXE = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
const WCAG_22_AA = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

interface AxeRun {
  violations: { id: string; nodes: { target: unknown; failureSummary?: string }[] }[]
  passes: unknown[]
}

/** Fails if axe-core finds anything against WCAG 2.2 AA in a part of the page. */
export async function assertAccessible(page: Page, what: string, selector = 'pow-gate'): Promise<void> {
  await page.evaluate(AXE)
  const { violations, passes }: AxeRun = await page.evaluate(
    `axe.run({ include: [${JSON.stringify(selector)}] }, { runOnly: ${JSON.stringify(WCAG_22_AA)} })`,
  )
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${JSON.stringify(nodes.map(node => node.failureSummary))}`,
  )
  assert.deepEqual(found, [], what)
  assert.ok(passes.length > 0, 'axe looked at nothing')
}

/** A page with one element in a form. */
export function formPage(
  attributes: string,
  options: { script?: string; head?: string; lang?: string; form?: string } = {},
): string {
  const { script = '', head = '', lang = 'en', form = '' } = options
  return `<!doctype html><html lang="${lang}" dir="${/^(ar|he)/.test(lang) ? 'rtl' : 'ltr'}"><head><title>A form</title>
<meta charset="utf-8"><meta name="color-scheme" content="light dark">${head}</head><body><main><h1>A form</h1>
<form action="/received" method="post" ${form}><label>Name <input name="name" value="Ada"></label>
<pow-gate ${attributes}></pow-gate><button>Send</button></form></main>${script}</body></html>`
}
