/** A website for tests: pages with chosen headers, and a record of what browsers post to it. */

import { once } from 'node:events'
import { createServer, type OutgoingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { listenAnywhere } from './ports.ts'
import { leftovers } from './processes.ts'

/** Where a page's policy may send its reports: `report-uri /csp-reports`. */
export const REPORT_PATH = '/csp-reports'

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
}

/** A violation of a page's Content-Security-Policy. */
export interface PolicyReport {
  readonly directive: string
  readonly blocked: string
  readonly document: string
}

interface Served {
  readonly body: string | Uint8Array
  readonly headers: OutgoingHttpHeaders
}

/** An HTTP server on a free port of 127.0.0.1; stopped when the test file ends, if not before. */
export class LoopbackServer {
  readonly #server: Server

  protected constructor(server: Server) {
    this.#server = server
    leftovers.add(this)
  }

  protected async listen(): Promise<this> {
    await listenAnywhere(this.#server)
    return this
  }

  /** The server's origin under a host; other hosts (`localhost`, or one of the browser's `hosts`) are other origins. */
  origin(host = '127.0.0.1'): string {
    return `http://${host}:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    if (!leftovers.delete(this)) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}

export class PageServer extends LoopbackServer {
  /** These three grow until a test or `addWidgetPage` (widget.ts) empties them. */
  readonly forms: URLSearchParams[] = []
  readonly reports: PolicyReport[] = []
  /** Each request, such as `GET /form`. */
  readonly requests: string[] = []
  /** Browsers request the icon by themselves; without one, each page would have an error on its console. */
  readonly #pages = new Map<string, Served>([['/favicon.ico', { body: '', headers: {} }]])

  private constructor() {
    const server = createServer()
    super(server)
    server.on('request', async (message, response) => {
      const body = await buffer(message).catch(() => undefined)
      if (body === undefined) return // the browser broke off
      const path = message.url!.split('?', 1)[0]!
      this.requests.push(`${message.method} ${path}`)
      if (message.method === 'POST' && path === REPORT_PATH) this.reports.push(policyReport(body))
      else if (message.method === 'POST') this.forms.push(new URLSearchParams(body.toString()))
      const page = this.#pages.get(path) ?? (message.method === 'POST' ? RECEIVED : undefined)
      const type = CONTENT_TYPES[extname(path)] ?? 'text/html; charset=utf-8'
      response.writeHead(page === undefined ? 404 : 200, { 'Content-Type': type, ...page?.headers })
      response.end(page?.body)
    })
  }

  static start(): Promise<PageServer> {
    return new PageServer().listen()
  }

  /** @param path without a query, which is ignored; its ending gives the content type */
  add(path: string, body: string | Uint8Array, headers: OutgoingHttpHeaders = {}): void {
    this.#pages.set(path, { body, headers })
  }
}

/** The answer to a form that is posted to an address without a page. */
const RECEIVED: Served = { body: '<!doctype html><html lang="en"><title>Received</title>', headers: {} }

/** CSP level 3, section 5.3: the body of a report to a `report-uri`. */
function policyReport(body: Buffer): PolicyReport {
  const { 'csp-report': report } = JSON.parse(body.toString())
  return {
    directive: report['effective-directive'],
    blocked: report['blocked-uri'],
    document: report['document-uri'],
  }
}
