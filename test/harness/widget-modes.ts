/**
 * Pages that record how it goes with their element; and policies that allow just what one mode of the widget needs, as in the
 * table of docs/widget.md, "Strict pages".
 */

import { formPage } from './widget-pages.ts'
import type { Surroundings } from './widget-stage.ts'

/** Forbids everything but the service's script and endpoints, and the page's icon. @param more `; directive`, several times */
export const strictPolicy = (service: string, more: string, scripts = '') =>
  `default-src 'none'; img-src 'self'; script-src 'self' ${service}${scripts}; connect-src ${service}${more}`

/** Mode, solver, attributes and policy of each page. @param service the service's origin for pages */
export function strictPages(service: string) {
  const strict = (more: string, scripts?: string) =>
    strictPolicy(service, `${more}; require-trusted-types-for 'script'; trusted-types`, scripts)
  return [
    ['worker', 'wasm', 'worker-src="/powgate-worker.js"', `${strict("; worker-src 'self'")} powgate`],
    ['frame', 'wasm', '', `${strict(`; frame-src ${service}`)} 'none'`],
    ['blob', 'wasm', 'solver="blob"', `${strict('; worker-src blob:', " 'wasm-unsafe-eval'")} powgate`],
    ['page', 'script', 'solver="page"', `${strict('')} 'none'`],
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

export interface WidgetPage {
  readonly key?: string
  readonly attributes?: string
  /** Violations are reported to the page's server. */
  readonly policy?: string
  /** Stands before the widget's script. */
  readonly more?: string
}

/** Adds the page `/form` with an element, and the file `/powgate-worker.js`. */
export async function addWidgetPage(
  { service, site, gateway, pages }: Surroundings,
  { key = site.siteKey, attributes = '', policy = '', more = '' }: WidgetPage,
): Promise<void> {
  const script = `<script src="/listen.js"></script>${more}<script src="${gateway.origin()}/widget.js"></script>`
  const worker = await fetch(`${service.url}/widget/worker.js`)
  const full = `${policy}; report-uri /csp-reports; form-action 'self'`
  pages.add('/powgate-worker.js', await worker.text())
  pages.add('/listen.js', LISTENER)
  pages.add(
    '/form',
    formPage(`site-key="${key}" ${attributes}`, { script }),
    policy === '' ? {} : { 'Content-Security-Policy': full },
  )
  pages.reports.length = pages.forms.length = gateway.requests.length = 0
}
