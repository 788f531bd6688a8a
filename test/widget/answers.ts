/** What tests of the widget share: answers of a service that refuses, is busy or away, and a page on which the widget is out of view. */

import type { FaultyAnswer } from '../harness/browser-proxy.ts'

/** An answer of this kind, which asks to be tried again after so many seconds. */
const refusal = (status: number, error: string, code: string) => (seconds: number) =>
  ({ status, headers: { 'Retry-After': String(seconds) }, body: { error, code } }) satisfies FaultyAnswer

export const limited = refusal(429, 'Too many requests.', 'rate-limited')
export const away = refusal(503, 'Away.', 'unavailable')
export const REFUSED: FaultyAnswer = { status: 403, body: { error: 'Refused.', code: 'site-inactive' } }
/** /verify answers so where the score is too low. */
export const NOT_PASSED: FaultyAnswer = { status: 200, body: { token: null, passed: false, expiresAt: null } }

/** What 1280 x 1024 leaves at 400 % zoom. */
export const SMALL = { viewport: { width: 320, height: 256 } }
/** Stands between the widget and the button, so that not both are in view. */
export const FAR = '<p style="height:1500px"></p>'

/** Runs in the page before the widget: notes what the browser says of the form at the element. */
export const NOTE_COMPLAINT = `<script>{
const { setValidity } = ElementInternals.prototype
ElementInternals.prototype.setValidity = function (...parts) { window.complaint = parts[1]; setValidity.apply(this, parts) }
}</script>`
