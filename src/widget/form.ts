/**
 * The element's part in its form: carries the token, and keeps the form invalid without one. A submission that came too
 * early is repeated as soon as the token is there.
 */

interface FormHooks {
  /** The visitor uses the form. */
  readonly onUse: () => void
  /** The form is being submitted without a token. Returns what to wait for, or undefined to let the browser complain. */
  readonly onSubmit: () => Promise<unknown> | undefined
  /** A submission that waits for the token is late, or was sent again. */
  readonly onLate: () => void
  /** A submission that waited got no token. @param takesFocus unless the visitor has gone on to another field */
  readonly onFail: (takesFocus: boolean) => void
}

const FIELD = 'powgate-token'
/** A wait that people notice. */
const LATE_MS = 600

/** A click or key that submits the form, unless a handler of the page prevents it. */
interface Submitting {
  readonly event: Event
  readonly submitter: HTMLButtonElement | null
}

type Control = HTMLElement & { readonly form?: HTMLFormElement | null }

export class FormLink {
  readonly #host: HTMLElement
  readonly #internals: ElementInternals | undefined
  /** Where browsers show their complaint; inside the shadow tree. */
  readonly #anchor: HTMLElement
  readonly #hooks: FormHooks
  /** Only for browsers without form-associated elements. */
  #input: HTMLInputElement | undefined
  #hasToken = false
  #submitting: Submitting | undefined
  #isWaiting = false
  #detach: () => void = () => {}

  constructor(host: HTMLElement, anchor: HTMLElement, hooks: FormHooks) {
    this.#host = host
    this.#anchor = anchor
    this.#hooks = hooks
    this.#internals = host.attachInternals?.()
    host.addEventListener('invalid', event => {
      // A page that calls checkValidity() in a handler submits nothing: then the event is still being dispatched.
      const { event: cause, submitter } = this.#submitting ?? {}
      if (cause === undefined || cause.defaultPrevented || cause.eventPhase !== Event.NONE) return
      if (this.#goOnLater(submitter ?? null, this.#areOthersValid())) event.preventDefault()
    })
  }

  get form(): HTMLFormElement | null {
    return this.#internals === undefined ? this.#host.closest('form') : this.#internals.form
  }

  /** @param complaint what the browser shows if the form is sent without a token */
  set(token: string | undefined, complaint: string): void {
    this.#hasToken = token !== undefined
    const name = this.#host.getAttribute('name') || FIELD
    if (this.#internals === undefined) this.#setInput(name, token)
    else {
      const data = token === undefined ? null : new FormData()
      data?.append(name, token!)
      this.#internals.setFormValue(data)
      this.#internals.setValidity(this.#hasToken ? {} : { valueMissing: true }, complaint, this.#anchor)
    }
  }

  #setInput(name: string, token: string | undefined): void {
    if (this.#input === undefined) {
      this.#input = document.createElement('input')
      this.#input.type = 'hidden'
      this.#host.append(this.#input)
    }
    this.#input.name = name
    this.#input.value = token ?? ''
  }

  /** Listens at the root, which may be a shadow root: a control may belong to a form without being inside it. */
  attach(): void {
    this.#detach()
    const { form } = this
    const root = this.#host.getRootNode()
    const abort = new AbortController()
    const on = (type: string, listener: (event: Event, control: Control) => void) =>
      root.addEventListener(
        type,
        event => {
          const [target] = event.composedPath()
          const control =
            target instanceof Element ? target.closest<Control>('button,input,select,textarea,form') : null
          const isOurs = control !== null && (control === form || control.form === form)
          if (form === null || isOurs) listener(event, control ?? this.#host)
        },
        { capture: true, signal: abort.signal },
      )
    on('focusin', this.#hooks.onUse)
    on('click', (event, control) => {
      this.#hooks.onUse()
      const button = control as HTMLButtonElement
      if (/^(submit|image)$/.test(button.type)) this.#noteSubmitting({ event, submitter: button })
    })
    on('keydown', (event, control) => {
      const isEnter = (event as KeyboardEvent).key === 'Enter' && control.localName === 'input'
      if (isEnter) this.#noteSubmitting({ event, submitter: null })
    })
    on('submit', event => this.#onSubmit(event as SubmitEvent))
    this.#detach = () => abort.abort()
    if (form?.contains(document.activeElement)) this.#hooks.onUse()
  }

  detach(): void {
    this.#detach()
  }

  /** There is no token only if nothing was validated, or if this browser does not know that the element is invalid. */
  #onSubmit(event: SubmitEvent): void {
    const submitter = event.submitter as HTMLButtonElement | null
    if (event.target !== this.form || this.#hasToken || submitter?.formNoValidate) return
    if (!this.#goOnLater(submitter, true)) return
    event.preventDefault()
    event.stopImmediatePropagation()
  }

  #noteSubmitting(noted: Submitting): void {
    this.#submitting = noted
    setTimeout(() => {
      if (this.#submitting === noted) this.#submitting = undefined
    })
  }

  #areOthersValid(): boolean {
    const controls = [...(this.form?.elements ?? [])] as (Element & { validity?: ValidityState })[]
    return controls.every(control => control === this.#host || control.validity?.valid !== false)
  }

  /**
   * Starts the verification that the form waits for. Returns whether there is one.
   *
   * @param isComplete false if the visitor has to correct other fields and send the form again
   */
  #goOnLater(submitter: HTMLButtonElement | null, isComplete: boolean): boolean {
    const verification = this.#hooks.onSubmit()
    if (verification === undefined) return false
    if (this.#isWaiting || !isComplete) {
      if (this.#isWaiting) this.#hooks.onLate()
      verification.catch(() => {})
      return true
    }
    this.#isWaiting = true
    const late = setTimeout(this.#hooks.onLate, LATE_MS)
    const { activeElement } = document
    const boxes = () => this.form?.getClientRects().length
    const shown = boxes()
    verification
      .then(() => {
        // Who closes a dialog or goes back a step, takes the form for not sent.
        if (this.#hasToken && !boxes() === !shown) this.#submit(submitter)
      })
      .catch(() => this.#hooks.onFail(document.activeElement === activeElement))
      .finally(() => {
        clearTimeout(late)
        this.#isWaiting = false
      })
    return true
  }

  #submit(submitter: HTMLButtonElement | null): void {
    const { form } = this
    // The button may have been replaced in the meantime, and older browsers have only click().
    const present = submitter?.form === form ? submitter : null
    if (form?.requestSubmit) form.requestSubmit(present)
    else present?.click()
  }
}
