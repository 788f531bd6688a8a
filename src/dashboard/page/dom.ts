/** Makes HTML and SVG elements. Text is never added as HTML. */

type Attributes = Readonly<Record<string, string | number | true>>
type Child = Node | string

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  return filled(document.createElement(tag), attributes, children)
}

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Tag] {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children)
}

function filled<Made extends Element>(
  element: Made,
  attributes: Attributes,
  children: readonly Child[],
): Made {
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value === true ? '' : String(value))
  element.append(...children)
  return element
}

/** Changes nothing if the text is the same, because screen readers announce changes. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Changes nothing if the children are the same, because screen readers announce changes, and a selection would be lost. */
export function setContent(element: Element, children: readonly Element[]): void {
  const next = element.cloneNode(false) as Element
  next.append(...children)
  if (!next.isEqualNode(element)) element.replaceChildren(...children)
}

/** @param id of an element that dashboard.html has */
export function byId<Kind extends HTMLElement>(id: string): Kind {
  return document.getElementById(id) as Kind
}
