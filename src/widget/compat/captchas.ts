/**
 * Shared by the scripts that replace the vendors' own. Each loads the widget from where the script came from, and puts a box into each
 * of the vendor's containers: a div with a <pow-gate> and the vendor's form fields. It fills the fields, and calls the page's functions.
 * If the container is a button, the box stands behind the button, and a click on the button starts the verification.
 */

import { nowMs, takeOut, unclobbered } from '../dom.ts'
import type { PowGateElement } from '../powgate.d.ts'
import { normalized, type Options, optionsOf, type Values, warnOfUnmapped, warnOnce } from './options.ts'

export const page = unclobbered(document)

/** null in a module. */
const script = page.currentScript as HTMLScriptElement | null
/** Matches the address of a script that replaces a vendor's, at its own path or at the vendor's. Group 1 is the service, 2 the query. */
const ADDRESS =
  /(https?:[^\s?#]*?)\/(?:(?:compat\/|widget\/compat-)[\w.]+|(?:1|turnstile\/v0|recaptcha)\/(?:api|enterprise))\.js(\?[^\s#:)]*)?/
/** The stack trace, in which `:LINE:COLUMN)` follows, comes first, because an injected `<base>` changes the service that `src` says. */
const address = ADDRESS.exec(`${new Error().stack}`) ?? ADDRESS.exec(script?.src ?? '')
/** The query of the script's address, which no `<base>` changes: `?render=explicit&onload=NAME`. */
export const query = new URLSearchParams(ADDRESS.exec(script?.src ?? '')?.[2] ?? address?.[2] ?? '')

const domReady = new Promise<unknown>(resolve => {
  if (page.readyState === 'loading') page.addEventListener('DOMContentLoaded', resolve)
  else setTimeout(resolve) // The rest of this script runs first.
})

/** Each box has an attribute of this name, whose value is the widget's id, and a property. A copy that a script made has only the attribute. */
const MARK = 'data-powgate-box'

/** When somebody last pressed or typed in the page. */
let usedAtMs = 0
for (const type of ['pointerdown', 'keydown', 'click'])
  page.addEventListener(type, ({ isTrusted }) => isTrusted && (usedAtMs = nowMs()), true)

/** Loads by `import`, because Trusted Types would need a policy for a script element. */
const widget = import(`${address?.[1]}/widget/${ASSET_NAMES.widgetJs}`).then(() =>
  customElements.whenDefined('pow-gate'),
)

/** Resolves when the vendor's script would call `onload`. */
export const ready = Promise.all([widget, domReady])
ready.catch(error => console.error(`powgate: the widget did not load: ${error}`))

export const whenReady = (callback: () => void): void => void ready.then(callback, () => {})

/** What differs between the vendors' scripts. Flags that a vendor leaves out are false. */
export interface Vendor {
  /** Finds containers that are rendered without a call. */
  readonly selector: string
  /** Names of the form fields that get the token. */
  readonly fields: readonly string[]
  readonly fieldTag: 'input' | 'textarea'
  /** True if the vendor's widget renews a token without a call of `expired-callback`. */
  readonly isRenewing?: (options: Options) => boolean
  /** True if the vendor's visible widget verifies at once after a reset too, and not only at a press: see `reset`. */
  readonly verifiesAfterReset?: boolean
  /** True if a call that names no widget means the last one, not the first. */
  readonly isLastDefault?: boolean
  /** True if the vendor's widget verifies only on `execute()`. */
  readonly isManual: (options: Options) => boolean
  readonly isInvisible: (options: Options) => boolean
  /** The id of a widget, by how many were made before it. */
  readonly idOf: (index: number) => string
  /** What the vendor allows as `action` and `cdata`, if it has them. */
  readonly patterns?: Readonly<Record<string, RegExp>>
}

/** A widget that has been rendered: the box, which is in or behind the container, and the <pow-gate> in the box. */
export interface Captcha {
  readonly id: string
  readonly container: Element
  readonly box: HTMLElement
  readonly gate: PowGateElement
  readonly isManual: boolean
  hasExpired: boolean
  /** True during error-callback. */
  isFailing?: boolean
  /** When the page last got a token by `callback`. */
  givenAtMs?: number
}

export class Captchas {
  readonly #vendor: Vendor
  readonly #all = new Map<string, Captcha>()
  #countMade = 0
  #observer: MutationObserver | undefined

  /** A script that is loaded twice uses the widgets of the first load, so that it does not double them. */
  static shared(vendor: Vendor): Captchas {
    const all = window as unknown as Record<symbol, Captchas | undefined>
    return (all[Symbol.for(`powgate ${vendor.fields[0]}`)] ??= new Captchas(vendor))
  }

  constructor(vendor: Vendor) {
    this.#vendor = vendor
  }

  /** @param renders true if containers are rendered without a call: those in the page, and copies that come later */
  start(renders: boolean): void {
    const renderAll = () => {
      // Each is rendered in a microtask of its own, so one that throws does not stop the others.
      for (const container of page.querySelectorAll(this.#vendor.selector))
        queueMicrotask(() => this.render(container))
      const renderCopies = () => {
        for (const container of page.querySelectorAll(this.#vendor.selector))
          if (this.#copyIn(container) !== undefined) this.render(container)
      }
      this.#observer ??= new MutationObserver(renderCopies)
      this.#observer.observe(document, { childList: true, subtree: true }) // again has no effect
    }
    if (renders) void domReady.then(renderAll)
    const name = query.get('onload')
    if (name) whenReady(() => callbackOf(name)?.())
  }

  render(where: unknown, values?: Values | null): Captcha | undefined {
    const container = elementOf(where)
    if (container === null) {
      console.error('powgate: there is no such container:', where)
      return undefined
    }
    const copy = this.#copyIn(container)
    if (copy !== undefined) {
      takeOut(copy)
      // An original that has left the page is removed, or a call that names no widget would mean it.
      const original = this.#all.get(copy.getAttribute(MARK)!)
      if (original?.box.isConnected === false) this.remove(original.id)
    }
    const present = this.#captchaIn(container)
    if (present?.box.parentNode) {
      warnOnce('a container was rendered twice; the first widget stays')
      return present
    }
    if (present !== undefined) this.remove(present.id) // the page emptied the container
    const options = optionsOf(container, values)
    warnOfUnmapped(options)
    const captcha = this.#create(container, options)
    this.#all.set(captcha.id, captcha)
    return captcha
  }

  /** @param which an id, a container, a selector, or nothing: the vendor's default */
  find(which?: unknown): Captcha | undefined {
    if (which === undefined || which === null || which === '') {
      const all = [...this.#all.values()]
      return all[this.#vendor.isLastDefault ? all.length - 1 : 0]
    }
    const byId = this.#all.get(String(which))
    if (byId !== undefined || typeof which === 'number') return byId
    const container = elementOf(which)
    return container === null ? undefined : this.#captchaIn(container)
  }

  /** @param values may replace the widget's `action` and `cdata` */
  execute({ box, gate, isManual }: Captcha, values?: Values | null): Promise<string> {
    const isOther = this.#setActionAndData(gate, normalized(values))
    return widget.then(() => {
      // A token, or a verification that runs, has the old values. A manual widget's token is dropped even if the values are the same,
      // because the page may have sent that token already.
      if (isManual ? isOther || gate.token !== null : isOther && gate.token !== null) gate.reset()
      else if (isOther) box.prepend(gate) // A move begins the verification anew. Unlike reset(), it loses no Send that waits.
      return gate.execute()
    })
  }

  response(which?: unknown): string {
    return this.find(which)?.gate.token ?? ''
  }

  reset(which?: unknown): void {
    const captcha = this.find(which)
    if (captcha === undefined) return
    const { gate, isManual, isFailing, givenAtMs = 0 } = captcha
    if (isFailing) return // packages reset at each error, which would try again at once and for ever
    captcha.hasExpired = false
    // A page whose callback sends its form and resets would send without end, so after that the widget waits until its form is used.
    const waits = !this.#vendor.verifiesAfterReset && givenAtMs > usedAtMs
    if (!isManual) gate.setAttribute('auto', waits ? 'focus' : 'load')
    gate.reset?.() // The method is missing until the widget has loaded.
  }

  remove(which?: unknown): void {
    const captcha = this.find(which)
    if (captcha === undefined) return
    this.#all.delete(captcha.id)
    takeOut(captcha.box)
    captcha.gate.reset?.() // Otherwise the page would hear of the token's expiry.
  }

  /**
   * Returns the container's box if it is a copy, made with the container by a page cache (Turbo's) or a script: nobody fills its fields,
   * or hears of its widget. A copy has the attribute MARK, but not the property. A button's box stands behind the button, perhaps after
   * something that a script has put between.
   */
  #copyIn(container: Element): Element | undefined {
    let box = isButton(container) ? container.nextElementSibling : container.querySelector(`:scope>[${MARK}]`)
    while (box && !box.matches(`[${MARK}],${this.#vendor.selector}`)) box = box.nextElementSibling
    return box?.hasAttribute(MARK) && !(MARK in box) ? box : undefined
  }

  #captchaIn(container: Element): Captcha | undefined {
    return [...this.#all.values()].find(captcha => captcha.container === container)
  }

  #create(container: Element, options: Options): Captcha {
    const button = isButton(container) ? container : undefined
    const isManual = button !== undefined || this.#vendor.isManual(options)
    const isInvisible = button !== undefined || this.#vendor.isInvisible(options)
    const box = Object.assign(page.createElement('div'), { [MARK]: true })
    const gate = gateOf(options, isManual, isInvisible)
    this.#setActionAndData(gate, options)
    const id = this.#vendor.idOf(this.#countMade++)
    box.setAttribute(MARK, id)
    const captcha: Captcha = { id, container, box, gate, isManual, hasExpired: false }
    const fields = this.#fieldsOf(options, id)
    // A widget keeps its form from being submitted without a token. But a manual widget is often started by the form's submit handler,
    // so a shadow tree keeps the manual widget out of the form.
    if (isManual) box.attachShadow({ mode: 'open' }).append(gate)
    else box.append(gate)
    box.append(...fields)
    this.#connect(captcha, options, fields)
    if (button === undefined) container.append(box)
    else button.after(box)
    button?.addEventListener('click', event => {
      if (this.#all.get(id) !== captcha) return // It was removed.
      event.preventDefault()
      this.execute(captcha).catch(() => {}) // The event `failed` tells errors.
    })
    return captcha
  }

  /** @returns true if a value has changed. @throws Error for a value that the vendor refuses too */
  #setActionAndData(gate: PowGateElement, options: Options): boolean {
    const patterns = Object.entries(this.#vendor.patterns ?? {})
    const given = patterns.filter(([name]) => options[name] !== undefined)
    // All are checked before one is set. Otherwise a later call would take the value for that of the present token.
    for (const [name, pattern] of given)
      if (!pattern.test(String(options[name])))
        throw new Error(`powgate: "${name}" must match ${pattern}, not "${options[name]}"`)
    const changed = given.filter(([name]) => gate.getAttribute(name) !== String(options[name]))
    for (const [name] of changed) gate.setAttribute(name, String(options[name]))
    return changed.length > 0
  }

  #fieldsOf(options: Options, id: string): (HTMLInputElement | HTMLTextAreaElement)[] {
    if (String(options.responsefield) === 'false') return []
    const { fields, fieldTag } = this.#vendor
    const names = options.responsefieldname ? [String(options.responsefieldname)] : fields
    return names.map(name => {
      const field = page.createElement(fieldTag)
      const isTaken = page.getElementById(name) !== null
      Object.assign(field, { name, id: isTaken ? `${name}-${id}` : name, autocomplete: 'off' })
      field.style.display = 'none' // Policies forbid an attribute `style`.
      return field
    })
  }

  /** Fills the fields and calls the page's functions when the state changes. */
  #connect(captcha: Captcha, options: Options, fields: readonly { value: string }[]): void {
    const { gate } = captcha
    const isRenewing = this.#vendor.isRenewing?.(options)
    let given: string | undefined // the token that the page has from `callback`
    const fill = () => {
      for (const field of fields) field.value = gate.token ?? ''
    }
    const call = (name: string, value?: string) => {
      try {
        callbackOf(options[name])?.(value)
      } catch (error) {
        queueMicrotask(() => {
          throw error // The page hears of it, and of the calls that follow.
        })
      }
    }
    gate.addEventListener('statechange', () => {
      fill()
      if (gate.state === 'idle') given = undefined // after a reset, by which the page has given the token up itself
    })
    gate.addEventListener('verified', ({ detail }) => {
      fill()
      captcha.hasExpired = false
      // A page that keeps its token must hear that the token is void before it hears of another.
      if (given !== undefined && !isRenewing) call('expiredcallback', given)
      if (gate.token !== detail.token) return // expired-callback has reset the widget
      given = detail.token
      captcha.givenAtMs = nowMs()
      call('callback', given)
    })
    gate.addEventListener('expired', () => {
      fill()
      captcha.hasExpired = true
      call('expiredcallback', given)
      given = undefined
    })
    gate.addEventListener('failed', ({ detail }) => {
      captcha.isFailing = true
      setTimeout(() => (captcha.isFailing = false)) // a task later, because an async function of the page resets in a microtask
      call('errorcallback', detail.code)
    })
    widget.catch(() => call('errorcallback', 'network'))
  }
}

const isButton = (container: Element) => container.matches('button,input')

function gateOf(options: Options, isManual: boolean, isInvisible: boolean): PowGateElement {
  const gate = page.createElement('pow-gate')
  const set = (name: string, value: unknown) => gate.setAttribute(name, String(value))
  set('site-key', options.sitekey ?? '')
  set('name', '') // the vendor's field carries the token
  set('auto', isManual ? 'off' : 'load') // The vendors' widgets start then, too.
  if (isInvisible) set('invisible', '')
  if (options.theme === 'light' || options.theme === 'dark') set('theme', options.theme)
  const language = options.language ?? options.hl ?? query.get('hl')
  if (language && language !== 'auto') set('lang', language)
  return gate
}

/** A function, or the page's global of that name; not the browser's own, which injected markup could call. */
function callbackOf(value: unknown): ((value?: string) => unknown) | undefined {
  const callback = typeof value === 'string' ? Reflect.get(window, value) : value
  if (typeof callback === 'function' && (callback === value || !isNative(callback)))
    return callback as (value?: string) => unknown
  if (value !== undefined) console.error('powgate: there is no such function:', value)
  return undefined
}

/** False for a page's bound functions, named "bound ...", and for those that settle a promise, without a name: they show no code either. */
function isNative(callback: { readonly name: string }): boolean {
  const code = Function.prototype.toString.call(callback)
  return /\{\s*\[native code\]\s*\}$/.test(code) && !/^(bound |$)/.test(callback.name)
}

function elementOf(where: unknown): Element | null {
  if (where instanceof Element) return where
  if (typeof where !== 'string') return null
  const byId = page.getElementById(where)
  if (byId !== null) return byId
  try {
    return page.querySelector(where)
  } catch {
    return null // The text is no selector.
  }
}
