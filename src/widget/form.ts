/**
 * The element's part in its form: it adds the token, keeps the form invalid without one, and sends a form later that was submitted
 * too early. Members of the form are read through `unclobbered` (dom.ts), because a field named "submit" hides that method.
 */

import { advise } from './advice.ts'
import { listen, sleep, takeOut, unclobbered } from './dom.ts'
import { reflect } from './properties.ts'
import { noteRequests, type Submitter, Submitting } from './submitting.ts'

interface FormHooks {
  /** The visitor uses the form. */
  readonly onUse: () => void
  /** The box got the focus: the browser moves it there to say that there is no token. */
  readonly onBoxFocus: () => void
  /** The form is submitted without a token. Returns what to wait for, or undefined to let the browser complain. */
  readonly onSubmitWithoutToken: () => Promise<unknown> | undefined
  /** `isWaiting` has changed. */
  readonly onWaiting: () => void
  /** The submission still waits after LATE_MS, or Send was pressed once more (`isRepeated`). */
  readonly onLate: (isRepeated: boolean) => void
  /**
   * A submission got no token. `takesFocus` is false if the visitor has gone on to another field. `retry` lets the form wait
   * again, for the verification that runs when it is called.
   */
  readonly onFail: (takesFocus: boolean, retry: () => void) => void
  /** A dialog, popover or `<details>` around the form was closed, or `formnovalidate` sends it: what waits or failed is dropped. */
  readonly onDrop: () => void
  /** The browser sent the form with its token, and the page still waits for the answer, or stays (a download, `target`, status 204). */
  readonly onSpent: () => void
}

/** The visitor's last click or key, on a button or another element, of any form: also for other elements than the one that sent. */
let press: { readonly on?: EventTarget | null } = {}
/** What `press` was at the last submission that had a token. If it is so still, nobody has pressed anything since. */
let pressSent = press
function notePress({ isTrusted, target }: Event): void {
  if (isTrusted) press = { on: unclobbered(target as Element).closest('button') ?? target }
}
listen(document, 'click', notePress)
listen(document, 'keydown', notePress)

const FIELD = 'powgate-token'
/** An element that a page cache has copied finds the copy of its field by this attribute. */
const FIELD_ATTRIBUTE = 'data-powgate'
/** Send seems to do nothing if nothing visible changes within a tenth of a second. The rest of it is left for drawing. */
const LATE_MS = 60
/** A token is not sent again within this time, so that a double click sends once. */
const RESENT_MS = 2000
/** The same where a script of the page handles the submission: shorter, because it may find a mistake and send nothing. */
const HANDLED_MS = 700

/** The types of buttons that submit. */
const SUBMITS = /^(submit|image)$/

/** False for a field that `autofocus` gave the focus, until the visitor has used the page. */
function isByVisitor(control: Element): boolean {
  return !(control as HTMLElement).autofocus || navigator.userActivation?.hasBeenActive !== false
}

type Control = HTMLElement & { readonly form?: HTMLFormElement | null }

export class FormLink {
  readonly #host: HTMLElement
  readonly #internals: ElementInternals | undefined
  /** Browsers show their message about the form here. */
  readonly #box: HTMLElement
  readonly #hooks: FormHooks
  /** The hidden field in which the form sends the token. */
  #field = unclobbered(document).createElement('input')
  #token: string | undefined
  #complaint = ''
  /** The event that sent the token just now, so that it is not sent again. */
  #sent: Event | undefined
  readonly #submitting = new Submitting()
  /** True while a submission waits for the token. */
  isWaiting = false
  /** True for LATE_MS of `isWaiting`, or until Send is pressed again. A page that disables its form then wants no second Send; the first goes on. */
  isJustSent = false
  /** The button that was pressed last: visitors may press another one while the form waits. */
  #submitter: Submitter = null
  /** True if the last submission without a token was by a button with `formnovalidate`. */
  #isUnchecked = false
  #stops: (() => void)[] = []

  constructor(
    host: HTMLElement,
    internals: ElementInternals | undefined,
    box: HTMLElement,
    hooks: FormHooks,
  ) {
    this.#host = host
    this.#internals = internals
    this.#box = box
    this.#hooks = hooks
    box.addEventListener('focus', hooks.onBoxFocus)
    Object.assign(this.#field, { type: 'hidden', autocomplete: 'off' }).setAttribute(FIELD_ATTRIBUTE, '')
    // The browser validates the form, and there is no token. It may do so for a submission, or for checkValidity() of the page.
    host.addEventListener('invalid', event => {
      const submitter = this.#submitting.submitterOf(this.form) // undefined for checkValidity()
      if (submitter !== undefined && this.#sendLater(submitter, this.#areOthersValid()))
        event.preventDefault() // The browser complains of other fields only.
    })
  }

  get form(): HTMLFormElement | null {
    if (this.#internals !== undefined) return this.#internals.form
    const id = this.#host.getAttribute('form')
    const root = unclobbered(this.#host.getRootNode()) as Document
    if (id === null) return this.#host.closest('form')
    // The root of an element that has left the page is an element, without this method.
    return (root.getElementById?.(id) ?? null) as HTMLFormElement | null
  }

  /** @param complaint what the browser says if there is no token */
  setToken(token: string | undefined, complaint: string, isDisabled: boolean): void {
    if (token !== this.#token) this.#sent = undefined
    this.#token = token
    this.#complaint = complaint
    this.#showValidity(token !== undefined)
    const [host, field] = [this.#host, this.#field]
    // Libraries read fields by name, so the token needs a field. It is added with the token, because until then a framework may
    // compare the page with its server's markup.
    if (!token || !this.#name || this.form === null) return void takeOut(field)
    Object.assign(field, { name: this.#name, value: token, disabled: isDisabled })
    reflect(field, 'form', host.getAttribute('form'))
    if (field.parentNode !== host) host.append(field)
  }

  #showValidity(isValid: boolean): void {
    this.#internals?.setValidity(isValid ? {} : { valueMissing: true }, this.#complaint, this.#box)
  }

  /** True if the submission only closes a dialog, so no token is needed. */
  #isForDialog(submitter: Submitter): boolean {
    const { form } = this
    return (submitter?.formMethod || (form && unclobbered(form).method)) === 'dialog'
  }

  get #name(): string {
    return this.#host.getAttribute('name') ?? FIELD
  }

  /** Listens at the document or shadow root, because a form's controls may be outside of it. */
  attach(): void {
    this.detach()
    this.#field = this.#host.querySelector(`:scope>[${FIELD_ATTRIBUTE}]`) ?? this.#field
    const { form } = this
    if (form !== null) noteRequests(form)
    const root = this.#host.getRootNode()
    const on = (type: string, listener: (event: Event, control: Control) => void) => {
      const end = listen(root, type, event => {
        const path = event.composedPath()
        const [target] = path
        const isElement = target instanceof Element
        const control = isElement && unclobbered(target).closest<Control>('button,input,select,textarea,form')
        // A library's control (Ionic, Shoelace) has its field in a shadow tree, so only the control itself knows our form.
        // `window.form` may be an element of that name, so only elements are asked.
        const isOurs = path.some(
          node => node === form || (node instanceof Element && (node as Control).form === form),
        )
        if (form === null || isOurs) listener(event, control || this.#host)
      })
      this.#stops.push(end)
    }
    // On Back, Chromium gives back what was typed only if the form's first two fields have the same names as when the page was left.
    // The page's markup lacks the token's field, so the field is taken out before.
    this.#stops.push(listen(window, 'pagehide', () => takeOut(this.#field)))
    for (const type of ['focusin', 'pointerdown', 'input', 'change'])
      on(type, (_, control) => isByVisitor(control) && this.#hooks.onUse())
    on('click', (event, control) => {
      this.#hooks.onUse()
      const button = control as HTMLButtonElement
      // A button in the shadow tree of a library's control has no form, so pressing it submits nothing by itself.
      const isOutside = this.form !== null && button.form !== this.form
      if (SUBMITS.test(button.type) && !isOutside) void this.#notePressed(event, button)
    })
    on('keydown', (event, control) => {
      const isEnter = (event as KeyboardEvent).key === 'Enter' && control.localName === 'input'
      if (isEnter) void this.#notePressed(event, null)
    })
    on('submit', event => this.#onSubmit(event as SubmitEvent))
    for (const type of ['close', 'toggle'])
      this.#stops.push(
        listen(root, type, ({ target, newState }: ToggleEvent) => {
          if (newState !== 'open' && unclobbered(target as Node).contains(this.form)) this.#hooks.onDrop()
        }),
      )
    on('formdata', event => {
      const { target, formData } = event as FormDataEvent
      const name = this.#name
      if (target !== this.form || !name || formData.has(name) || this.#host.matches(':disabled,[disabled]'))
        return
      // The data lacks the field. If there is a token, a script that replaced parts of the page has removed the field. If there is none,
      // form.submit() or new FormData() came too early, or a form that is not validated: the widget cannot hold them back. A button with
      // `formnovalidate` is meant to send no token.
      if (this.#token) formData.append(name, this.#token)
      else if (!this.#isUnchecked) advise('no-token', this.#host)
    })
    const { activeElement } = unclobbered(document)
    if (form !== null && unclobbered(form).contains(activeElement) && isByVisitor(activeElement!))
      this.#hooks.onUse()
  }

  detach(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  #onSubmit(event: SubmitEvent): void {
    // Older browsers lack `submitter`.
    const { submitter = this.#submitting.pressed ?? null } = event as { readonly submitter?: Submitter }
    if (event.target !== this.form || event.defaultPrevented || this.#isForDialog(submitter)) return
    // A script or Enter sends without a click, and the token may have expired while the machine slept.
    this.#hooks.onUse()
    if (this.#token !== undefined) {
      // `#sent` is the submission that had this token less than RESENT_MS or HANDLED_MS ago. It decides on the present one:
      //   The browser has sent `#sent`: suppressed. Nothing may follow, or a double click would send the form twice.
      //   A script prevented `#sent`, and the same button was pressed since: suppressed. It is a double click too.
      //   A script prevented `#sent`, and nothing or another button was pressed since: goes on, after a check or a box "Really?".
      const isSecondPress = press !== pressSent && press.on === pressSent.on
      pressSent = press
      if (this.#sent && (isSecondPress || !this.#sent.defaultPrevented)) suppress(event)
      else void this.#noteSent(event)
      return
    }
    // Without a token the browser comes here only if it validated nothing (`novalidate`), or lacks ElementInternals to validate by.
    this.#isUnchecked = submitter?.formNoValidate ?? false
    if (this.#isUnchecked) this.#hooks.onDrop()
    else if (this.#sendLater(submitter, true)) suppress(event)
  }

  /** Keeps the token from being sent twice, and reports it as spent if the browser, not a script, has sent it. */
  async #noteSent(event: Event): Promise<void> {
    this.#sent = event
    await sleep(0) // The page's handlers run first, and those of another element of the form, which may suppress the event.
    const isByBrowser = !event.defaultPrevented
    await sleep(isByBrowser ? RESENT_MS : HANDLED_MS)
    if (this.#sent !== event) return // there is another token meanwhile, or the page's script has sent this one again
    this.#sent = undefined
    if (isByBrowser) this.#hooks.onSpent()
  }

  /** A button that only closes a dialog needs no token, so the element is valid while the browser handles the press. */
  async #notePressed(event: Event, submitter: Submitter): Promise<void> {
    const isForDialog = this.#isForDialog(submitter)
    if (isForDialog) this.#showValidity(true)
    await this.#submitting.press(event, submitter)
    if (isForDialog) this.#showValidity(this.#token !== undefined)
  }

  #areOthersValid(): boolean {
    const { form } = this
    if (form === null) return true
    // `:invalid` matches no field that browsers do not validate, such as a disabled one. A fieldset is invalid because of its fields,
    // which are asked themselves, and another element of ours because it waits for its token too.
    const isInvalid = (control: Element) => control.matches(':invalid:not(fieldset):not(pow-gate)')
    return ![...unclobbered(form).elements].some(isInvalid)
  }

  /**
   * Lets the form wait for a verification, and sends it then. Returns false if there is none: then the browser complains, or sends a form
   * that it does not validate.
   *
   * @param isComplete false if the visitor has to correct other fields and send again
   * @param disabledBefore controls that the page disabled at an earlier try, and that are to be sent
   */
  #sendLater(
    submitter: Submitter,
    isComplete: boolean,
    disabledBefore: readonly HTMLButtonElement[] = [],
  ): boolean {
    const verification = this.#hooks.onSubmitWithoutToken()
    if (verification === undefined) return false
    this.#submitter = submitter
    verification.catch(() => {}) // The event `failed` tells its error.
    // Send was pressed again while the form waits: the form is sent once all the same, and the widget says again what it waits for.
    if (this.isWaiting) this.#showLate(true)
    else if (isComplete) void this.#sendAfter(verification, disabledBefore)
    return true
  }

  async #sendAfter(
    verification: Promise<unknown>,
    disabledBefore: readonly HTMLButtonElement[],
  ): Promise<void> {
    this.#setWaiting(true)
    const page = unclobbered(document)
    const { activeElement } = page
    const { form } = this
    const isRendered = () => !!form && unclobbered(form).getClientRects().length > 0
    const wasRendered = isRendered()
    /** False if a script replaced the form, or a dialog with it was closed: whoever did that thinks that it was not sent. */
    const isThere = () =>
      this.form === form && !!form && unclobbered(form).isConnected && isRendered() === wasRendered
    const controls = form ? ([...unclobbered(form).elements] as HTMLButtonElement[]) : []
    const toSend = controls.filter(control => !control.disabled || disabledBefore.includes(control))
    /** What the page disables right after Send, against a second one. It is looked for once: after LATE_MS, or at an earlier end. */
    let disabled: HTMLButtonElement[] | undefined
    const findDisabled = () => (disabled ??= toSend.filter(control => control.disabled))
    const late = setTimeout(() => {
      findDisabled()
      this.#showLate(false)
    }, LATE_MS)
    let isSent = false
    try {
      await verification
      isSent = !!this.#token && isThere()
      if (isSent) submit(form!, this.#submitter, findDisabled())
    } catch {
      const disabledThen = findDisabled()
      const retry = () => this.form === form && this.#sendLater(this.#submitter, true, disabledThen)
      // The focus goes to the body from a button that the page disables.
      this.#hooks.onFail([page.body, activeElement].includes(page.activeElement), retry)
    }
    if (form && !isSent && !isThere()) advise('send-lost', this.#host)
    clearTimeout(late)
    this.#setWaiting(false)
  }

  #setWaiting(isWaiting: boolean): void {
    this.isWaiting = isWaiting
    this.isJustSent = isWaiting // until LATE_MS have passed
    this.#hooks.onWaiting()
  }

  #showLate(isRepeated: boolean): void {
    this.isJustSent = false
    this.#hooks.onLate(isRepeated)
  }
}

function suppress(event: Event): void {
  event.preventDefault()
  event.stopImmediatePropagation()
}

/** @param disabled controls that the page has disabled, and that are to be sent */
function submit(form: HTMLFormElement, submitter: Submitter, disabled: readonly HTMLButtonElement[]): void {
  // A button that was replaced meanwhile can submit nothing, nor can one that the page has made a `type="button"`.
  const present = submitter?.form === form && SUBMITS.test(submitter.type) ? submitter : null
  const toEnable = [present, ...disabled].filter(control => control?.disabled)
  for (const control of toEnable) control!.disabled = false
  const { requestSubmit } = unclobbered(form) // bound to the form
  if (requestSubmit) requestSubmit(present)
  else {
    // In older browsers a click submits. Unlike submit(), it runs the page's handlers.
    const button = present ?? unclobbered(form).appendChild(unclobbered(document).createElement('button'))
    button.click()
    if (!present) takeOut(button)
  }
  for (const control of toEnable) control!.disabled = true
}
