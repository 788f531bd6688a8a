/**
 * Attributes as properties: frameworks set a property where there is one, and throw if it is read-only. There is no `name`,
 * because libraries that send fields by name would send the element beside its field. `disabled` and `invisible` are on by any true
 * value, as for form controls: Preact sets '' in place of undefined.
 */

const PROPERTIES = new Map(
  'site-key endpoint auto theme invisible disabled action cdata worker-src solver threads gpu'
    .split(' ')
    .map(attribute => [attribute.replace(/-./, ([, letter]) => letter!.toUpperCase()), attribute]),
)

export function reflect(element: Element, attribute: string, value: unknown): void {
  if (value === false || value === null || value === undefined) element.removeAttribute(attribute)
  else element.setAttribute(attribute, value === true ? '' : `${value}`)
}

export function defineProperties(prototype: HTMLElement): void {
  for (const [property, attribute] of PROPERTIES) {
    const isFlag = attribute === 'invisible' || attribute === 'disabled'
    Object.defineProperty(prototype, property, {
      configurable: true,
      enumerable: true,
      get(this: Element) {
        return isFlag ? this.hasAttribute(attribute) : (this.getAttribute(attribute) ?? '')
      },
      set(this: Element, value: unknown) {
        reflect(this, attribute, isFlag ? !!value : value)
      },
    })
  }
}

/** Properties that were set before the script came hide those of the class, `form` too, which the class itself defines. */
export function takeOverProperties(element: HTMLElement): void {
  for (const property of Object.keys(element)) {
    if (property !== 'form' && !PROPERTIES.has(property)) continue
    const value = Reflect.get(element, property)
    Reflect.deleteProperty(element, property)
    Reflect.set(element, property, value)
  }
}
