/** What the visitor is told: one reason at a time, in the page's language, with its time. */

import { nowMs } from './dom.ts'
import type { PowGateError, WaitReason } from './service.ts'
import { DEFAULT_LANGUAGE, type Language, type TextKey, timeIn } from './texts.ts'
import type { Picture, Row, State } from './view.ts'

/** While it works, a text stays at least so long. */
const TEXT_MS_MIN = 5000
/** From when on a device counts as slow, and the visitor may cancel. */
export const SLOW_SECONDS = 10

export class Words {
  /** Undefined until its texts are there. */
  language: Language | undefined
  readonly #host: Element
  readonly #onChange: () => void
  #waiting: { readonly reason: WaitReason; readonly untilMs: number } | undefined
  /** What is said while it works, and when another text may replace it. */
  #saying: { readonly key: TextKey; readonly untilMs: number } = { key: 'working', untilMs: 0 }
  /** The moment since which this device would have hashed without a pause; undefined while it does not hash. */
  #hashingSinceMs: number | undefined
  #hashedMs = 0

  constructor(host: Element, onChange: () => void) {
    this.#host = host
    this.#onChange = onChange
  }

  get isWaiting(): boolean {
    return this.#waiting !== undefined
  }

  /** A state was entered, or a verification begins. */
  begin(): void {
    this.#waiting = undefined
    this.#saying = { key: 'working', untilMs: 0 }
    this.#hashedMs = 0
    this.#hashingSinceMs = undefined
  }

  /** @param reason undefined if the service has answered */
  wait(reason: WaitReason | undefined, ms: number): void {
    const before = this.#waiting?.reason
    // Of one call that is tried again, the first reason stays: a busy service may refuse in several ways.
    const stays = reason !== 'offline' && before !== 'offline'
    this.#waiting = reason && { reason: (stays && before) || reason, untilMs: nowMs() + ms }
    this.#onChange()
  }

  hash(isHashing: boolean): void {
    this.#hashedMs = this.#hashedForMs()
    this.#hashingSinceMs = isHashing ? nowMs() - this.#hashedMs : undefined
    this.#onChange()
  }

  #hashedForMs(): number {
    return this.#hashingSinceMs === undefined ? this.#hashedMs : nowMs() - this.#hashingSinceMs
  }

  /** No text gives way to another before five seconds are over. */
  whileWorking(): TextKey {
    const isSlow = this.#hashingSinceMs !== undefined && this.#hashedForMs() >= SLOW_SECONDS * 1000
    const key = this.#waiting?.reason ?? (isSlow ? 'slow' : 'working')
    const now = nowMs()
    if (key !== this.#saying.key && now >= this.#saying.untilMs)
      this.#saying = { key, untilMs: now + TEXT_MS_MIN }
    return this.#saying.key
  }

  pictureOf(state: State, key: TextKey): Picture {
    if (state !== 'working') return state
    if (key === 'offline') return 'offline'
    if (key !== 'working' && key !== 'slow') return 'waiting'
    return this.#hashingSinceMs === undefined ? 'working' : 'hashing'
  }

  /** The text, and below it what a wait takes, when to try again, or what the page's developer has to mend. */
  linesOf(state: State, key: TextKey, error: PowGateError | undefined): { text: string; detail: string } {
    if (this.language === undefined) return { text: '', detail: '' }
    const seconds = Math.floor(this.#hashedForMs() / 1000)
    const announced = seconds < 30 ? SLOW_SECONDS : seconds - (seconds % (seconds < 120 ? 30 : 60))
    const text = this.text(key).replace('{s}', this.#time(announced, false))
    let detail = error?.text === 'setup' ? error.code : ''
    if (error?.seconds) detail = `${this.text('retry')}: ${this.#time(error.seconds, true)}`
    if (state === 'working' && key !== 'offline' && this.#waiting?.reason === key) {
      const seconds = Math.ceil((this.#waiting.untilMs - nowMs()) / 1000)
      // A try that gets no answer takes up to 15 seconds, which would all be "in 0 seconds".
      detail =
        seconds > 0 ? this.text('wait').replace('{s}', this.#time(seconds, true)) : this.text('working')
    }
    return { text, detail }
  }

  /** The longest that each state may say, so that the box has room for it from the start. */
  longest(): Row[] {
    const row = (key: TextKey, button?: TextKey, ...more: string[]): Row => ({
      lines: [this.text(key).replace('{s}', this.#time(90, false)), ...more],
      button: button && this.text(button),
    })
    const wait = this.text('wait').replace('{s}', this.#time(90, true))
    const sending = this.text('sending')
    return [
      ...(['ready', 'idle', 'expired'] as const).map(key => row(key, 'start')),
      row('verified'),
      row('rejected', 'retry'),
      row('setup', 'retry', 'origin-not-allowed'),
      row('slow', 'cancel', sending),
      row('offline', 'cancel', sending),
      ...(['busy', 'unavailable', 'network'] as const).map(key => row(key, 'cancel', wait, sending)),
      row('unavailable', 'retry', wait),
    ]
  }

  #time(seconds: number, isAhead: boolean): string {
    return timeIn(this.language ?? DEFAULT_LANGUAGE, seconds, isAhead)
  }

  /** The attribute `text-KEY`, or the language's own text. */
  text(key: TextKey): string {
    return this.#host.getAttribute(`text-${key}`) || (this.language ?? DEFAULT_LANGUAGE).texts[key]
  }
}
