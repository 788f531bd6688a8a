/** What the console tells the page's developer: one line with the mistake and what mends it. */

import { bare } from './dom.ts'
import type { PowGateError } from './service.ts'

const said = new Set<string>()

function warnOnce(message: string, element: Element): void {
  if (said.has(message)) return
  said.add(message)
  console.warn(`pow-gate: ${message}`, element)
}

/** An element that stands alone in a page with forms probably belongs to one of them. */
export function adviseOnForm(element: HTMLElement & { readonly form: unknown }): void {
  const isOwn = element.getRootNode() === document && element.getAttribute('name') !== ''
  if (!isOwn || element.form !== null || bare(document).forms.length === 0) return
  warnOnce(
    'this element is outside of every form, so no form sends its token. Move it into the form, or give it form="ID". If only code needs the token: auto="off" and execute()',
    element,
  )
}

/** HTML has no `<pow-gate />`: what follows such a tag is inside the element. */
export function adviseOnEndTag(element: Element): void {
  if (element.querySelector('button,select,textarea,input:not([type=hidden])') !== null)
    warnOnce('the end tag is missing. Write <pow-gate ...></pow-gate>', element)
}

export function tellFailure(element: Element, { code, message, text }: PowGateError): void {
  const isTestKey = code === 'site-unknown' && /^site_Test/.test(element.getAttribute('site-key') ?? '')
  const hint = isTestKey ? ' This is a test key: start the service with POWGATE_TEST_KEYS=on.' : ''
  // A visitor who fails is no mistake of the page, hence no error on its console.
  const level = text === 'rejected' ? 'info' : 'error'
  console[level](`pow-gate: ${message}${hint} (${code}) at ${location.origin}`, element)
}
