/** Tells the page's developer a mistake on the console, and what mends it. */

import { unclobbered } from './dom.ts'
import type { PowGateError } from './service.ts'
import { autoOf } from './settings.ts'

const said = new Set<string>()

function warnOnce(code: string, message: string, element: Element): void {
  if (said.has(code)) return
  said.add(code)
  console.warn(`pow-gate: ${message} (${code})`, element)
}

/** Mistakes by their codes. */
const ADVICE = {
  'two-in-form': 'the form sends two tokens: remove an element',
  'outside-form':
    'outside of every form. Move it into the form, or give it form="ID". If only code needs the token: auto="off" and execute()',
  // HTML has no `<pow-gate />`: what follows such a tag becomes a child of the element.
  'end-tag-missing': 'write <pow-gate ...></pow-gate>: the end tag is missing',
  // Browsers do not validate a form before these two, so the widget cannot hold it back.
  'no-token':
    'form.submit() or new FormData() before there is a token. Use form.requestSubmit() or await execute()',
  'send-lost': 'the form was replaced or hidden while Send waited, and is not sent',
}

export const advise = (code: keyof typeof ADVICE, element: Element) => warnOnce(code, ADVICE[code], element)

/** An address with one of these ends is probably a mistake, but right if the service stands in a folder of that name. */
const OWN_PATH = /\/(challenge|verify|verify-token|siteverify|widget(\.js)?)[\s/]*$/

export function adviseOnMarkup(element: HTMLElement & { readonly form: HTMLFormElement | null }): void {
  const path = OWN_PATH.exec(element.getAttribute('endpoint') ?? '')?.[1]
  if (path) warnOnce('endpoint-path', `endpoint: leave out /${path}`, element)
  const name = element.getAttribute('name')
  if (name === '') return // It sends no token, so it needs no form.
  const { form } = element
  const isTwin = (other: Element) => other.localName === 'pow-gate' && other.getAttribute('name') === name
  if (form && [...unclobbered(form).elements].filter(isTwin).length > 1) advise('two-in-form', element)
  // An element in a page with forms probably belongs to one of them.
  const isAlone = !form && element.getRootNode() === document && unclobbered(document).forms.length > 0
  if (isAlone && autoOf(element) !== 'off') advise('outside-form', element)
}

export function logFailure(element: Element, { code, message, text }: PowGateError): void {
  const isTestKey = code === 'site-unknown' && /^site_Test/.test(element.getAttribute('site-key') ?? '')
  const hint = isTestKey ? ' This is a test key: start the service with POWGATE_TEST_KEYS=on.' : ''
  // These two say something of a visitor or a device, not of the page or the service.
  const level = text === 'rejected' || text === 'expired' ? 'info' : 'error'
  console[level](`pow-gate: ${message}${hint} (${code}) at ${location.origin}`, element)
}
