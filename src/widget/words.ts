/** Texts for the visitor, in the page's language: one reason at a time. */

import { nowMs } from './dom.ts'
import type { PowGateError, WaitReason } from './service.ts'
import { DEFAULT_LANGUAGE, durationText, type Language, type TextKey } from './texts.ts'
import type { Picture, State } from './view.ts'

/** A text stays at least this long while the widget works. */
const TEXT_MS_MIN = 5000
/** The visitor is told after this many seconds. */
const SLOW_SECONDS = 10

export class Words {
  /** Undefined until it has loaded. */
  language: Language | undefined
  readonly #host: Element
  readonly #onChange: () => void
  #waiting: { readonly reason: WaitReason; readonly untilMs: number } | undefined
  /** The text shown while working, and the time before which no other replaces it. */
  #shown: { readonly key: TextKey; readonly untilMs: number } = { key: 'working', untilMs: 0 }
  #isHashing = false
  /** The element's timer counts the seconds of work, waits included; it stands still while the device sleeps. */
  #seconds = 0

  constructor(host: Element, onChange: () => void) {
    this.#host = host
    this.#onChange = onChange
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined
  }

  reset(): void {
    this.#waiting = undefined
    this.#shown = { key: 'working', untilMs: 0 }
    this.#isHashing = false
    this.#seconds = 0
  }

  /** @param reason undefined: the service has answered */
  setWait(reason: WaitReason | undefined, ms: number): void {
    const before = this.#waiting?.reason
    // The first reason stays while a call is tried again, because a busy service refuses in several ways.
    const isSameCall = before && reason !== 'offline' && before !== 'offline'
    this.#waiting = reason && { reason: isSameCall ? before : reason, untilMs: nowMs() + ms }
    this.#onChange()
  }

  setHashing(isHashing: boolean): void {
    this.#isHashing = isHashing
    this.#onChange()
  }

  countSecond(): void {
    this.#seconds++
    this.#onChange()
  }

  /** Chooses the text to show while working. It then stays for TEXT_MS_MIN. */
  chooseWorkingText(): TextKey {
    const key = this.#waiting?.reason ?? (this.#seconds >= SLOW_SECONDS ? 'slow' : 'working')
    if (key !== this.#shown.key && nowMs() >= this.#shown.untilMs)
      this.#shown = { key, untilMs: nowMs() + TEXT_MS_MIN }
    return this.#shown.key
  }

  pictureOf(state: State, key: TextKey): Picture {
    if (state !== 'working') return state
    if (key === 'offline') return 'offline'
    if (key !== 'working' && key !== 'slow') return 'waiting'
    return this.#isHashing ? 'hashing' : 'working'
  }

  /** The line of text, and below it `detail`: how long a wait takes, or the code of what the site's owner has to mend. */
  linesOf(state: State, key: TextKey, error: PowGateError | undefined): { text: string; detail: string } {
    if (this.language === undefined) return { text: '', detail: '' }
    let detail = error?.text === 'setup' ? `${this.text('tell')}:\n${error.code}` : ''
    if (key === 'offline') detail = this.text('online')
    else if (state === 'working' && this.#waiting?.reason === key) {
      // The last second stays while a call is tried, which may take 15 seconds: alternating texts would be read out each time.
      const seconds = Math.max(1, Math.ceil((this.#waiting.untilMs - nowMs()) / 1000))
      detail = this.text('wait').replace('{s}', this.#time(seconds, true))
    }
    // Only `slow` tells a time. The browser's first format of one takes 20 to 60 ms of the page, so no other text asks for it.
    const text = this.text(key).replace('{s}', () => this.#time(this.#slowSeconds(), false))
    return { text, detail }
  }

  /** The time that the text `slow` tells: 10, 30, 60 or 90 seconds, or a whole minute. */
  #slowSeconds(): number {
    const seconds = this.#seconds
    return seconds < 30 ? SLOW_SECONDS : seconds - (seconds % (seconds < 120 ? 30 : 60))
  }

  /** “Try again”, and below it the wait that the service asked for, if it did. */
  retryButton(seconds: number | undefined): string {
    return this.text('retry') + (seconds ? `\n${this.#time(seconds, true)}` : '')
  }

  #time(seconds: number, isAhead: boolean): string {
    return durationText(this.language ?? DEFAULT_LANGUAGE, seconds, isAhead)
  }

  text(key: TextKey): string {
    return this.#host.getAttribute(`text-${key}`) || (this.language ?? DEFAULT_LANGUAGE).texts[key]
  }
}
