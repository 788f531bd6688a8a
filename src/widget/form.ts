/**
 * The element's part in its form: carries the token, keeps the form invalid until there is one, and lets a submission
 * that came too early go through by itself as soon as there is.
 */

export interface FormHooks {
  /** Somebody has begun to use the form. */
  readonly onFocus: () => void
  /** The form is being submitted without a token: what to wait for, or undefined to let the browser complain. */
  readonly onSubmit: () => Promise<unknown> | undefined
}

export const FIELD = 'powgate-token'

export class FormLink {
  readonly #host: HTMLElement
  readonly #internals: ElementInternals | undefined
  /** Where the browser points at when it complains; inside the shadow tree. */
  readonly #anchor: HTMLElement
  readonly #hooks: FormHooks
  /** For browsers without form-associated elements. */
  #input: HTMLInputElement | undefined
  #hasToken = false
  /** Set while the browser handles a click or key that submits: the button, or undefined for a form without one. */
  #submitting: { readonly submitter: HTMLElement | null } | undefined
  #isWaiting = false
  #detach: () => void = () => {}

  constructor(host: HTMLElement, anchor: HTMLElement, hooks: FormHooks) {
    this.#host = host
    this.#anchor = anchor
    this.#hooks = hooks
    this.#internals = host.attachInternals?.()
    host.addEventListener('invalid', event => {
      if (this.#submitting !== undefined && this.#goOnLater(this.#submitting.submitter))
        event.preventDefault()
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

  attach(): void {
    this.#detach()
    const { form } = this
    const abort = new AbortController()
    const on = (target: EventTarget, type: string, listener: (event: Event) => void) =>
      target.addEventListener(type, listener, { capture: true, signal: abort.signal })
    on(form ?? document, 'focusin', this.#hooks.onFocus)
    if (form !== null) {
      const { ownerDocument } = form
      on(ownerDocument, 'click', ({ target }) => {
        const button = target instanceof Element ? target.closest<HTMLButtonElement>('button,input') : null
        if (button?.form === form && /submit|image/.test(button.type)) this.#noteSubmitting(button)
      })
      on(form, 'keydown', event => {
        if ((event as KeyboardEvent).key === 'Enter') this.#noteSubmitting(null)
      })
      // Comes only if the form does not validate, or this browser does not know that the element is invalid.
      on(ownerDocument, 'submit', event => {
        if (event.target !== form || this.#hasToken) return
        if (!this.#goOnLater((event as SubmitEvent).submitter)) return
        event.preventDefault()
        event.stopImmediatePropagation()
      })
    }
    this.#detach = () => abort.abort()
  }

  detach(): void {
    this.#detach()
  }

  #noteSubmitting(submitter: HTMLElement | null): void {
    const noted = { submitter }
    this.#submitting = noted
    setTimeout(() => {
      if (this.#submitting === noted) this.#submitting = undefined
    })
  }

  /** Returns whether the submission will be repeated. */
  #goOnLater(submitter: HTMLElement | null): boolean {
    if (this.#isWaiting) return true
    const verification = this.#hooks.onSubmit()
    if (verification === undefined) return false
    this.#isWaiting = true
    verification
      .then(() => {
        if (!this.#hasToken) return
        // Older browsers: a click submits as well.
        if (this.form?.requestSubmit) this.form.requestSubmit(submitter)
        else submitter?.click()
      })
      .catch(() => {}) // the element shows what went wrong
      .finally(() => {
        this.#isWaiting = false
      })
    return true
  }
}
