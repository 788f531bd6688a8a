/** /compat/recaptcha.js: the global `grecaptcha`, and containers of the class `g-recaptcha`. */

import { type Captcha, Captchas, page, query, ready, type Vendor, whenReady } from './captchas.ts'
import { type Options, type Values, warnOfUnmapped } from './options.ts'

const isInvisible = ({ size }: Options) => size === 'invisible'
const vendor: Vendor = {
  selector: '.g-recaptcha',
  fields: ['g-recaptcha-response'],
  fieldTag: 'textarea',
  isManual: isInvisible,
  isInvisible,
  idOf: String,
  patterns: { action: /^[\w/]{0,100}$/ },
}
const captchas = Captchas.shared(vendor)
/** The widgets of version 3, one for each site key. In `captchas` they would take ids, and the default, of the page's own widgets. */
const version3 = new Captchas(vendor)
const v3ByKey = new Map<string, Captcha>()
/** The token of each widget's last call of `inTurn`, still pending perhaps. */
const lastTokens = new WeakMap<Captcha, Promise<unknown>>()

/** Lets a call wait for the widget's earlier ones: two at once would share a token, or one with another action would break off the first. */
function inTurn(captchas: Captchas, captcha: Captcha, values: Values): Promise<string> {
  const token = Promise.resolve(lastTokens.get(captcha))
    .catch(() => {})
    .then(() => captchas.execute(captcha, values))
  lastTokens.set(captcha, token)
  return token
}

/**
 * Renders a widget outside of every form for a page that names no container, as the vendor's script does. It is in a corner of the
 * window, so that visitors see a wait or a failure that their Send caused, and outside of `body`, which Turbo replaces.
 */
function renderInCorner(captchas: Captchas, values: Values): Captcha {
  const container = page.documentElement.appendChild(page.createElement('div'))
  Object.assign(container.style, { position: 'fixed', bottom: 0, right: 0, zIndex: 2 ** 31 - 1 })
  const captcha = captchas.render(container, values)!
  const { gate } = captcha
  gate.addEventListener('statechange', () => (container.hidden = !/working|failed/.test(gate.state)))
  return captcha
}

async function executeKey(sitekey: string, values?: Values | null): Promise<string> {
  warnOfUnmapped(values)
  await ready
  const captcha =
    v3ByKey.get(sitekey) ?? renderInCorner(version3, { sitekey, size: 'invisible', 'response-field': false })
  v3ByKey.set(sitekey, captcha)
  // '' clears the action of the last call.
  return inTurn(version3, captcha, { action: values?.action ?? '' })
}

/** @param which a widget; a text that names none is a site key, as in version 3 */
function execute(which?: unknown, values?: Values | null): Promise<string> {
  if (typeof which === 'string' && captchas.find(which) === undefined) return executeKey(which, values)
  const captcha = captchas.find(which)
  if (captcha === undefined) return Promise.reject(new Error('No reCAPTCHA clients exist.'))
  // A call without an action is one of version 2. It does not wait: during a verification it shares the token, and `callback` comes once.
  const executing = values?.action ? inTurn(captchas, captcha, values) : captchas.execute(captcha, values)
  executing.catch(() => {}) // pages of version 2 hear of it by error-callback, and ignore the promise
  return executing
}

const grecaptcha = {
  ready: whenReady,
  render: (where: unknown, values?: Values | null) => {
    const hasOptionsAlone = typeof where === 'object' && where !== null && !(where instanceof Element)
    const captcha = hasOptionsAlone
      ? renderInCorner(captchas, { ...(where as Values), size: 'invisible' })
      : captchas.render(where, values)
    return captcha === undefined ? undefined : Number(captcha.id)
  },
  execute,
  reset: (which?: unknown) => captchas.reset(which),
  getResponse: (which?: unknown) => captchas.response(which),
}

/** A script that is loaded twice keeps the first load's object, and with it the widgets of version 3, unless the first load failed. */
const globals = window as unknown as Record<symbol, object | undefined>
const SHARED = Symbol.for('powgate grecaptcha')
const own = { ...grecaptcha, enterprise: grecaptcha }
const shared = (globals[SHARED] ??= own)
if (shared === own) ready.catch(() => (globals[SHARED] = undefined))
Object.assign(window, { grecaptcha: shared })

/** Before the script has loaded, pages leave functions for `ready` here, as the vendor's guide says. */
const { ___grecaptcha_cfg: early } = window as { ___grecaptcha_cfg?: { fns?: (() => void)[] } }
for (const callback of early?.fns ?? []) whenReady(callback)

/** `onload` is the vendor's default. Pages that render by themselves say `explicit`, those of version 3 their site key. */
const whichRender = query.get('render')
captchas.start(whichRender === null || whichRender === 'onload')
