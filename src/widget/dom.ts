/** How the widget reaches a page that others wrote. */

/**
 * The same object with the members of its prototypes only, because fields, forms and images hide those by their names: after
 * `<form name="hidden">`, `document.hidden` is that form.
 */
export function bare<Target extends EventTarget>(target: Target): Target {
  const prototype = Object.getPrototypeOf(target)
  return new Proxy(target, {
    get: (_, name) => {
      const member = Reflect.get(prototype, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/**
 * Returns what ends the listening. Not by a `signal`: zone.js before 0.14.3 shares one listener among all of a target, and an
 * abort would remove it.
 */
export function listen<Heard extends Event>(
  target: EventTarget,
  type: string,
  listener: (event: Heard) => void,
  capture = false,
): () => void {
  const { addEventListener, removeEventListener } = bare(target)
  addEventListener(type, listener as EventListener, capture)
  return () => removeEventListener(type, listener as EventListener, capture)
}

/** Not by `remove()`: that of Prototype.js throws for an element without a parent. */
export const takeOut = (node: Node) => node.parentNode?.removeChild(node)

/** As `finally`, which a page's old Promise lacks. */
export function lastly<Value>(work: Promise<Value>, end: () => void): Promise<Value> {
  work.then(end, end)
  return work
}

/** Since the page was opened. Not by `performance`, which a page's own `var performance` replaces. */
export const nowMs = () => new CustomEvent('').timeStamp

/** Undefined in older browsers, and where the page's script forbids it. */
export function internalsOf(element: HTMLElement): ElementInternals | undefined {
  try {
    return element.attachInternals()
  } catch {
    return undefined
  }
}
