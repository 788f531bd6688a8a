/** Tells what submits the form just now: a button, Enter, or a script of the page. */

import { sleep, unclobbered } from './dom.ts'

/** null without a button, as with Enter. */
export type Submitter = HTMLButtonElement | null

/** The form of the page's call of `requestSubmit`, and its button, while the browser validates the form for it. */
let requested: { readonly form: HTMLFormElement; readonly submitter: Submitter } | undefined

/**
 * `requestSubmit()` of an invalid form (Ctrl+Enter, Material Web's button) fires only `invalid`, like `checkValidity()`. The
 * method is wrapped to tell the two apart.
 */
export function noteRequests(form: HTMLFormElement): void {
  const { requestSubmit } = unclobbered(form) // bound to the form
  if (requestSubmit === undefined) return
  const value = (submitter: Submitter = null) => {
    requested = { form, submitter }
    try {
      requestSubmit(submitter)
    } finally {
      requested = undefined
    }
  }
  Reflect.defineProperty(form, 'requestSubmit', { value, configurable: true, writable: true })
}

export class Submitting {
  #pressed: { readonly event: Event; readonly submitter: Submitter } | undefined

  /** Remembers what the visitor pressed until the browser has handled the click or key, and resolves then. */
  async press(event: Event, submitter: Submitter): Promise<void> {
    const pressed = { event, submitter }
    this.#pressed = pressed
    await sleep(0)
    if (this.#pressed === pressed) this.#pressed = undefined
  }

  /** What the visitor pressed, while the browser handles it; handlers of the page may yet prevent the submission. */
  get pressed(): Submitter | undefined {
    return this.#pressed?.submitter
  }

  /** What submits the form, asked while the browser validates it; undefined if nothing does, as in `checkValidity()`. */
  submitterOf(form: HTMLFormElement | null): Submitter | undefined {
    if (requested?.form === form) return requested?.submitter
    if (this.#pressed === undefined) return undefined
    const { event, submitter } = this.#pressed
    // Browsers validate for a submission only after the handlers of the click or key have run (phase 0).
    return event.eventPhase === 0 && !event.defaultPrevented ? submitter : undefined
  }
}
