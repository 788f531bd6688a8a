/** How the element looks: builds its shadow tree and shows a state in it. Built without markup, for Trusted Types. */

import { STYLES } from './styles.ts'
import type { Language } from './texts.ts'

export type State = 'idle' | 'working' | 'verified' | 'failed' | 'expired'

export interface Shown {
  readonly state: State
  /** Announced politely by screen readers when it changes. */
  readonly text: string
  /** Not announced: a count-down, or an error code. */
  readonly detail: string
  /** Undefined: no button. */
  readonly button: string | undefined
  readonly label: string
  readonly isDisabled: boolean
}

const SVG = 'http://www.w3.org/2000/svg'
const CHECK = 'M7.5 12.5l3 3 6-6.5'
const WARNING = 'M12 7v6M12 16.5v.1'

export class View {
  /** Gets the focus when the focused button goes away; also where browsers show their complaint about the form. */
  readonly box = make('div', 'box')
  readonly #button = make('button', 'button')
  readonly #text = make('span', 'text')
  readonly #detail = make('span', 'detail')
  readonly #mark = shape('path', 'mark')
  readonly #ring = shape('circle', 'ring', { cx: 12, cy: 12, r: 10, pathLength: 100 })

  #wasNeeded = false

  constructor(root: ShadowRoot, onButton: () => void) {
    addStyles(root)
    const icon = shape('svg', 'icon', { viewBox: '0 0 24 24', 'aria-hidden': 'true' })
    icon.append(shape('circle', 'track', { cx: 12, cy: 12, r: 10 }), this.#ring, this.#mark)
    const body = make('span', 'body')
    this.#text.setAttribute('role', 'status')
    body.append(this.#text, this.#detail)
    this.box.setAttribute('role', 'group')
    this.box.tabIndex = -1
    this.#button.type = 'button'
    this.#button.onclick = onButton
    this.box.append(icon, body, this.#button)
    root.append(this.box)
  }

  setLanguage({ code, direction }: Language): void {
    this.box.lang = code
    this.box.dir = direction
  }

  show({ state, text, detail, button, label, isDisabled }: Shown): void {
    const { box } = this
    // Invisible elements appear when they fail, and stay, because the visitor is using them.
    this.#wasNeeded ||= state === 'failed'
    box.className = `box ${state}${this.#wasNeeded ? ' needed' : ''}`
    box.setAttribute('part', `box ${state}`)
    box.setAttribute('aria-label', label)
    // Screen readers would announce the same text again if it were set again.
    if (this.#text.textContent !== text) this.#text.textContent = text
    this.#detail.textContent = detail
    this.#mark.setAttribute('d', state === 'verified' ? CHECK : WARNING)
    const hadFocus = (box.getRootNode() as ShadowRoot).activeElement === this.#button
    this.#button.hidden = button === undefined
    this.#button.disabled = isDisabled
    if (button !== undefined) this.#button.textContent = button
    else if (hadFocus) box.focus()
  }

  /** @param share 0 to 1 */
  progress(share: number): void {
    this.#ring.style.setProperty('--_left', String(Math.round(100 * (1 - share))))
  }
}

function make<Tag extends 'div' | 'span' | 'button'>(tag: Tag, name: string): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  element.className = name
  element.setAttribute('part', name)
  return element
}

function shape(
  tag: 'svg' | 'circle' | 'path',
  name: string,
  attributes: Record<string, string | number> = {},
) {
  const element = document.createElementNS(SVG, tag)
  for (const [attribute, value] of Object.entries({ class: name, part: name, ...attributes })) {
    element.setAttribute(attribute, String(value))
  }
  return element as SVGElement
}

let sheet: CSSStyleSheet | undefined

/** Adds a constructed sheet, which is no inline style, so strict policies allow it. Older browsers get a style element. */
function addStyles(root: ShadowRoot): void {
  try {
    if (sheet === undefined) {
      sheet = new CSSStyleSheet()
      sheet.replaceSync(STYLES)
    }
    root.adoptedStyleSheets = [sheet]
  } catch {
    const element = document.createElement('style')
    element.textContent = STYLES
    root.append(element)
  }
}
