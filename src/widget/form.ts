/**
 * The element's part in its form: carries the token, keeps the form invalid until there is one, and lets a submission
 * that came too early go through by itself as soon as there is.
 */

export interface FormHooks {
  /** Somebody uses the form. */
  readonly onUse: () => void
  /** The form is being submitted without a token: what to wait for, or undefined to let the browser complain. */
  readonly onSubmit: () => Promise<unknown> | undefined
}

export const FIELD = 'powgate-token'

/** A click or key that submits the form, unless a handler of the page prevents it. */
interface Submitting {
  readonly event: Event
  readonly submitter: HTMLButtonElement | null
}

type Control = HTMLElement & { readonly form?: HTMLFormElement | null }

export class FormLink {
  readonly #host: HTMLElement
  readonly #internals: ElementInternals | undefined
  /** Where the browser points at when it complains; inside the shadow tree. */
  readonly #anchor: HTMLElement
  readonly #hooks: FormHooks
  /** For browsers without form-associated elements. */
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

  /** @param complaint what the browser says of a form that has no token */
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

  /** Listens at the root, which may be a shadow root: controls may belong to a form that they are not inside of. */
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

  /** Comes without a token only if nothing was validated, or if this browser does not know that the element is invalid. */
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
   * Starts what the form waits for. Returns whether there is anything to wait for.
   *
   * @param isComplete otherwise the visitor has to mend other fields and send the form again
   */
  #goOnLater(submitter: HTMLButtonElement | null, isComplete: boolean): boolean {
    const verification = this.#hooks.onSubmit()
    if (verification === undefined) return false
    if (this.#isWaiting || !isComplete) {
      verification.catch(() => {})
      return true
    }
    this.#isWaiting = true
    verification
      .then(() => {
        if (this.#hasToken) this.#submit(submitter)
      })
      .catch(() => {}) // the element shows what went wrong
      .finally(() => {
        this.#isWaiting = false
      })
    return true
  }

  #submit(submitter: HTMLButtonElement | null): void {
    const { form } = this
    // The button may have been replaced meanwhile, and older browsers know only clicks.
    const present = submitter?.form === form ? submitter : null
    if (form?.requestSubmit) form.requestSubmit(present)
    else present?.click()
  }
}
