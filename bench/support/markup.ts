/** Builds pieces of HTML and SVG. Texts from elsewhere pass through `escaped`. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** For text and for quoted attributes. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, character => ENTITIES[character]!)
}

/** @param attributes numbers are rounded to hundredths, which is finer than a screen */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  content = '',
): string {
  const list = Object.entries(attributes).map(([key, value]) => {
    const text = typeof value === 'number' ? String(Math.round(value * 100) / 100) : escaped(value)
    return ` ${key}="${text}"`
  })
  return `<${name}${list.join('')}>${content}</${name}>`
}

/** SVG text. */
export function label(
  x: number,
  y: number,
  text: string,
  anchor: 'start' | 'middle' | 'end' = 'start',
): string {
  return element('text', { x, y, 'text-anchor': anchor }, escaped(text))
}

export function line(x1: number, y1: number, x2: number, y2: number, className: string): string {
  return element('line', { x1, y1, x2, y2, class: className })
}

/**
 * An SVG that is one image to a screen reader, which hears its title; the figures themselves must be told elsewhere.
 *
 * @param id unique in its page
 */
export function image(id: string, title: string, width: number, height: number, content: string): string {
  const heading = element('title', { id }, escaped(title))
  const attributes = { viewBox: `0 0 ${width} ${Math.ceil(height)}`, role: 'img', 'aria-labelledby': id }
  return element('svg', attributes, heading + content)
}
