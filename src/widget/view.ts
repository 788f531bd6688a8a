/** The element's shadow tree, and how it shows a state. It is built without markup, for pages with Trusted Types. */

import { advise } from './advice.ts'
import { unclobbered } from './dom.ts'
import type { Language } from './texts.ts'

/**
 * Text has a contrast of at least 4.5 : 1 in both colour schemes, the icon and the button's edge 3 : 1. `contain` leaves the box
 * without a baseline, because that of its text differs by state and would move a button beside the element. Pages set
 * `--powgate-*`; `--_*` are the element's own, of which `--_left` is the part of the ring that is not drawn, in percent. The box has
 * its state as a class, `waiting` if the picture shows a wait, and `needed` once it has appeared. The iframe is of solver/frame-host.ts.
 */
const STYLES = `
:host{display:inline-block;vertical-align:middle;max-inline-size:100%;font:var(--powgate-font,max(15px,.9375rem)/1.3 system-ui,sans-serif);
--_fg:#1b1f24;--_bg:#fff;--_edge:#6b7480;--_main:#1f56c3;--_good:#14702f;--_bad:#b42318}
:host([theme=light]){color-scheme:light}:host([theme=dark]){color-scheme:dark}
@supports (color:light-dark(#000,#fff)){:host{--_fg:light-dark(#1b1f24,#eceff3);--_bg:light-dark(#fff,#171a1f);
--_edge:light-dark(#6b7480,#8a94a1);--_main:light-dark(#1f56c3,#8ab4ff);
--_good:light-dark(#14702f,#6fdc8c);--_bad:light-dark(#b42318,#ff9a91)}}
:host([hidden]),:host([invisible]) .box:not(.needed){display:none}
.box{box-sizing:border-box;contain:layout;display:flex;flex-wrap:wrap;align-items:center;align-content:center;gap:.2em .6em;
inline-size:20em;max-inline-size:100%;min-block-size:4.4em;padding:.2em .7em;
color:var(--powgate-color,var(--_fg));background:var(--powgate-background,var(--_bg));
border:1px solid var(--powgate-border,var(--_edge));border-radius:var(--powgate-radius,.5em)}
.box:focus{outline:none}.box:focus-visible,button:focus-visible{outline:2px solid var(--powgate-accent,var(--_main));outline-offset:2px}
.body{flex:1 1 5em;min-inline-size:0}.body,button{overflow-wrap:break-word;white-space:pre-wrap}:lang(ko){word-break:keep-all}
.text::after,.detail::after{content:' '}.detail,.sending{display:block;font-size:.8em}.detail:empty,.sending:empty{display:none}
svg{flex:none;inline-size:1.75em;block-size:1.75em;fill:none;stroke-width:2.5;stroke-linecap:round;stroke-linejoin:round}
.track{stroke:var(--powgate-track,var(--_edge));stroke-width:1.25}.mark{stroke:currentColor;stroke-width:2}
.ring{stroke:var(--powgate-accent,var(--_main));stroke-dasharray:100;stroke-dashoffset:var(--_left,75);
transform:rotate(-90deg);transform-origin:center;transition:stroke-dashoffset .2s}
.verified svg{color:var(--powgate-success,var(--_good))}.failed svg,.expired svg{color:var(--powgate-error,var(--_bad))}
.working .ring{animation:turn 1.6s linear infinite}@keyframes turn{to{transform:rotate(270deg)}}
.idle .ring,.waiting .ring{visibility:hidden}.verified .ring,.failed .ring,.expired .ring{stroke:currentColor;stroke-dashoffset:0}
button{flex:none;margin-inline-start:auto;max-inline-size:100%;min-block-size:1.9em;padding:.15em .6em;
font:inherit;font-size:.875em;line-height:1.2;color:var(--powgate-button-color,var(--_main));background:none;
border:1px solid;border-radius:calc(var(--powgate-radius,.5em)*.7);cursor:pointer}
button[hidden],iframe{display:none}button:disabled{opacity:.6;cursor:default}
@media (prefers-reduced-motion:reduce){.working .ring{animation:none}.ring{transition:none}}
@media (forced-colors:active){.track,.box .ring,.mark{stroke:CanvasText}button{border-color:ButtonText}}
`

/** What the widget does. */
export type State = 'idle' | 'working' | 'verified' | 'failed' | 'expired'

/** The drawing in the ring: states can be told apart without colour, and what a working widget does or waits for. */
export type Picture = State | 'hashing' | 'waiting' | 'offline'

interface Shown {
  readonly state: State
  readonly picture: Picture
  /** Announced by screen readers when it changes. */
  readonly text: string
  /** A count-down or an error code; announced only together with `text`. */
  readonly detail: string
  /** Says that the form will be sent; announced too. */
  readonly sending: string
  readonly button: string | undefined
  /** Names the box and the progress bar for screen readers. */
  readonly label: string
  readonly isDisabled: boolean
  /** Makes an `invisible` element appear. */
  readonly isNeeded: boolean
}

const PICTURES: Readonly<Record<Picture, string>> = {
  idle: 'M12 6.5l4.5 1.7v3.6c0 2.7-1.8 4.5-4.5 5.6c-2.7-1.1-4.5-2.9-4.5-5.6v-3.6z', // a shield
  working: 'M8 12v.1M12 12v.1M16 12v.1',
  hashing: '', // the ring fills
  waiting: 'M12 6.5v5.5l3.5 2.5', // a clock
  offline: 'M7 10.5a7.5 7.5 0 0 1 10 0M9.5 13.5a3.8 3.8 0 0 1 5 0M12 16.8v.1M7.5 6.5l9 11',
  verified: 'M7.5 12.5l3 3 6-6.5',
  failed: 'M12 7v6M12 16.5v.1',
  expired: 'M16.8 12.5a4.8 4.8 0 1 1-1.4-4M16 6v3h-3', // a round arrow
}

export class View {
  /** Takes the focus when the button disappears. Browsers show their complaint about the form here. */
  readonly box = make('div', 'box')
  readonly #button = make('button', 'button')
  readonly #text = make('span', 'text')
  readonly #detail = make('span', 'detail')
  readonly #sending = make('span', 'sending')
  readonly #icon = shape('svg', 'icon', { viewBox: '0 0 24 24', role: 'progressbar' })
  readonly #picture = shape('path', 'mark')
  readonly #ring = shape('circle', 'ring', { cx: 12, cy: 12, r: 10, pathLength: 100 })

  #hasAppeared = false
  #textShown = ''

  constructor(root: ShadowRoot, onButton: () => void) {
    addStyles(root)
    this.#icon.append(shape('circle', 'track', { cx: 12, cy: 12, r: 10 }), this.#ring, this.#picture)
    const body = make('span', 'body')
    // A screen reader reads the whole when its text changes, but not for a count-down. The styles put a space between its parts,
    // which must not collapse, or Orca says "BusyGoes on".
    body.setAttribute('role', 'status')
    this.#detail.setAttribute('aria-live', 'off')
    body.append(this.#text, this.#detail, this.#sending)
    this.box.setAttribute('role', 'group')
    this.box.tabIndex = -1
    this.#button.type = 'button'
    this.#button.onclick = onButton
    this.box.append(this.#icon, body, this.#button)
    // An element without its end tag contains the rest of the form.
    const slot = unclobbered(document).createElement('slot')
    slot.addEventListener('slotchange', () => {
      if (root.host.querySelector('button,select,textarea,input:not([type=hidden])'))
        advise('end-tag-missing', root.host)
    })
    root.append(this.box, slot)
  }

  setLanguage({ code, direction }: Language): void {
    this.box.lang = code
    this.box.dir = direction
  }

  show({ state, picture, text, detail, sending, button, label, isDisabled, isNeeded }: Shown): void {
    const { box } = this
    // An invisible element that has appeared stays, because the visitor is using it.
    this.#hasAppeared ||= isNeeded
    const isWaiting = picture === 'waiting' || picture === 'offline'
    box.className = `box ${state}${isWaiting ? ' waiting' : ''}${this.#hasAppeared ? ' needed' : ''}`
    box.setAttribute('part', `box ${state}`)
    box.setAttribute('aria-label', label)
    // Setting the same text again would announce it again, and replace a translator's.
    if (this.#textShown !== text) this.#text.textContent = this.#textShown = text
    this.#detail.textContent = detail
    if (this.#sending.textContent !== sending) this.#sending.textContent = sending
    this.#icon.setAttribute('aria-label', label)
    this.#icon.setAttribute('aria-hidden', String(state !== 'working'))
    this.#picture.setAttribute('d', PICTURES[picture])
    const hadFocus = (box.getRootNode() as ShadowRoot).activeElement === this.#button
    this.#button.hidden = button === undefined
    this.#button.disabled = isDisabled
    if (button !== undefined) this.#button.textContent = button
    else if (hadFocus) box.focus()
  }

  /**
   * Scrolls the element into view after Send, even an invisible one, and has its text announced, unless `isTextNew`: a text that has
   * changed since Send was announced when it did, if the element was shown.
   */
  reveal({ takesFocus = false, isTextNew = false }): void {
    const wasShown = this.box.offsetWidth > 0
    this.#hasAppeared = true
    this.box.classList.add('needed')
    this.box.scrollIntoView({ block: 'nearest' })
    if (takesFocus) this.box.focus()
    if (!isTextNew || !wasShown) this.#announce()
  }

  /** Hides the text for a moment: screen readers take what comes back for new. */
  #announce(): void {
    const parts = [this.#text, this.#detail, this.#sending]
    for (const { style } of parts) style.visibility = 'hidden'
    setTimeout(() => {
      for (const { style } of parts) style.visibility = ''
    }, 100)
  }

  /** @param share 0 to 1 */
  progress(share: number): void {
    const percent = Math.round(100 * share)
    this.#icon.setAttribute('aria-valuenow', String(percent))
    this.#ring.style.setProperty('--_left', String(Math.min(75, 100 - percent))) // The ring never looks empty: 75 as in STYLES.
  }
}

function make<Tag extends 'div' | 'span' | 'button'>(tag: Tag, name: string): HTMLElementTagNameMap[Tag] {
  const element = unclobbered(document).createElement(tag)
  element.className = name
  element.setAttribute('part', name)
  return element
}

function shape(
  tag: 'svg' | 'circle' | 'path',
  name: string,
  attributes: Record<string, string | number> = {},
) {
  const element = unclobbered(document).createElementNS('http://www.w3.org/2000/svg', tag)
  for (const [attribute, value] of Object.entries({ class: name, part: name, ...attributes })) {
    element.setAttribute(attribute, String(value))
  }
  return element as SVGElement
}

let sheet: CSSStyleSheet | undefined

/** A constructed sheet is no inline style, so strict policies allow it. Older browsers get a style element. */
function addStyles(root: ShadowRoot): void {
  try {
    if (sheet === undefined) {
      sheet = new CSSStyleSheet()
      sheet.replaceSync(STYLES)
    }
    root.adoptedStyleSheets = [sheet]
  } catch {
    const element = unclobbered(document).createElement('style')
    element.textContent = STYLES
    root.append(element)
  }
}
