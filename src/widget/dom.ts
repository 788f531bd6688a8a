/** Uses the DOM where a page has fields named like members of the DOM, or old libraries that replace what browsers have. */

/**
 * The same object with the members of its prototypes only, its methods bound to it. Named fields, forms and images hide those
 * members ("DOM clobbering"): after `<form name="hidden">`, `document.hidden` is that form.
 */
export function unclobbered<Target extends EventTarget>(target: Target): Target {
  const prototype = Object.getPrototypeOf(target)
  return new Proxy(target, {
    get: (_, name) => {
      const member = Reflect.get(prototype, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/**
 * Listens in the capture phase, so before the page's own handlers. Returns a function that ends the listening. A `signal` would not
 * do: zone.js before 0.14.3 has one listener for all of a target's handlers, which an abort would remove.
 */
export function listen<Heard extends Event>(
  target: EventTarget,
  type: string,
  listener: (event: Heard) => void,
): () => void {
  const { addEventListener, removeEventListener } = unclobbered(target) // bound to it
  addEventListener(type, listener as EventListener, true)
  return () => removeEventListener(type, listener as EventListener, true)
}

/** Does what `closest` does, and goes on around shadow trees. */
export function closestAround(element: Element, selector: string): Element | null {
  const root = element.getRootNode()
  return element.closest(selector) ?? (root instanceof ShadowRoot ? closestAround(root.host, selector) : null)
}

/** Removes a node without `remove()`, because that of Prototype.js throws for an element without a parent. */
export const takeOut = (node: Node) => node.parentNode?.removeChild(node)

export const sleep = (ms: number) => new Promise<undefined>(resolve => setTimeout(resolve, ms))

/** Does the work of `AbortSignal.timeout`, which browsers before 2022 lack. */
export function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), ms)
  return controller.signal
}

/** Milliseconds since the page was opened. A page's own `var performance` may replace `performance`. */
export const nowMs = () => new CustomEvent('').timeStamp

/** Undefined in older browsers, and where the page's script forbids it. */
export function internalsOf(element: HTMLElement): ElementInternals | undefined {
  try {
    return element.attachInternals()
  } catch {
    return undefined
  }
}
