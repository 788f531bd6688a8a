/**
 * /compat/redirect.js: loads the vendors' scripts from this service where a package's code has a vendor's address. It must run
 * before that code, and does not change scripts in the page's own markup.
 */

import { unclobbered } from '../dom.ts'

const { src } = unclobbered(document).currentScript as HTMLScriptElement
/** Ends in a slash. */
const service = new URL('..', src).href
/** Matches a vendor's host before a path that this service answers too. */
const VENDORS =
  /^(https?:)?\/\/(www\.google\.com|(www\.)?recaptcha\.net|(js\.)?hcaptcha\.com|challenges\.cloudflare\.com)\/(?=(1|turnstile\/v0|recaptcha)\/(api|enterprise)\.js)/

const moved = (url: unknown) => (VENDORS.test(`${url}`) ? `${url}`.replace(VENDORS, service) : url)

const scripts = HTMLScriptElement.prototype
const property = Object.getOwnPropertyDescriptor(scripts, 'src')!
Object.defineProperty(scripts, 'src', {
  ...property,
  set(this: HTMLScriptElement, url: unknown) {
    property.set!.call(this, moved(url))
  },
})
scripts.setAttribute = function (name, value) {
  Element.prototype.setAttribute.call(this, name, /^src$/i.test(name) ? (moved(value) as string) : value)
}
