/** Entry of the widget: the element <pow-gate>, its states, events and renewal. flow.ts obtains tokens, view.ts shows states. */

import { adviseOnMarkup, logFailure } from './advice.ts'
import { closestAround, internalsOf, unclobbered } from './dom.ts'
import { type FlowResult, obtainToken } from './flow.ts'
import { FormLink } from './form.ts'
import { HeldToken } from './held-token.ts'
import type { PowGateElement as Declared, PowGateEventMap, PowGateProperties } from './powgate.d.ts'
import { defineProperties, reflect, takeOverProperties } from './properties.ts'
import { type PowGateError, throwIfAborted } from './service.ts'
import { type Auto, assetsOfElement, autoOf, settingsOf } from './settings.ts'
import { DEFAULT_LANGUAGE, type Language, languageCode, loadLanguage, type TextKey } from './texts.ts'
import { type State, View } from './view.ts'
import { Words } from './words.ts'

/** The element shows no text until its language has loaded; after this time, it shows English. */
const LANGUAGE_MS_MAX = 2000

interface Verification {
  readonly promise: Promise<string>
  /** Aborted by `cancel`, which drops the verification too, and by `#beginAnew`, which does not, so `#run` starts again. */
  controller: AbortController
}

const OBSERVED = 'site-key endpoint worker-src solver threads gpu auto lang name'.split(' ')

/** powgate.d.ts describes what integrators may rely on. `defineProperties` below adds the properties of the attributes. */
class PowGateElement extends HTMLElement implements Omit<Declared, keyof PowGateProperties> {
  static readonly formAssociated = true
  static readonly observedAttributes = OBSERVED

  readonly #internals = internalsOf(this)
  readonly #view: View
  readonly #form: FormLink
  readonly #words = new Words(this, () => this.#render())
  #wantedLanguage = ''
  #state: State = 'idle'
  readonly #held = new HeldToken({ onRenew: () => this.#renew(), onExpire: () => this.#expire() })
  #error: PowGateError | undefined
  #verification: Verification | undefined
  /** Lets the form wait for the next verification, as it did for the one that failed. Set only in the state `failed`: see `#enter`. */
  #retrySubmission: (() => void) | undefined
  #isDisabled = false
  /** False before connectedCallback, when attributeChangedCallback may run already. */
  #isAttached = false
  /** Stays true if the page has at most one element outside of shadow trees. */
  #isInView = true
  readonly #viewport = new IntersectionObserver(entries => {
    this.#isInView = entries.pop()!.isIntersecting
    this.#autoStart('load')
  })
  #ticker: ReturnType<typeof setInterval> | undefined

  constructor() {
    super()
    const root = this.attachShadow({ mode: 'open', delegatesFocus: true })
    this.#view = new View(root, () => {
      this.#start()
      this.#retrySubmission?.() // still there: the next state drops it, which `#run` enters later
    })
    // FormHooks (form.ts) says when each of these is called.
    this.#form = new FormLink(this, this.#internals, this.#view.box, {
      onUse: () => {
        this.#held.expireIfDue()
        this.#autoStart('focus')
      },
      onBoxFocus: () => {
        const canStart = this.#state === 'idle' || this.#state === 'expired'
        if (canStart && autoOf(this) !== 'off') this.#start()
      },
      onSubmitWithoutToken: () => {
        const needsClick = autoOf(this) === 'off' && this.#verification === undefined
        if (needsClick) this.#view.reveal({}) // browsers complain only about what is visible
        // A page may disable the element while its form waits: if Send is pressed again then, the submission goes on.
        const isRefused = needsClick || (this.#isDisabled && !this.#form.isWaiting)
        return isRefused ? undefined : this.execute()
      },
      onWaiting: () => this.#render(),
      onLate: isRepeated => this.#view.reveal({ isTextNew: !isRepeated }), // it says since Send what the form waits for
      onFail: (takesFocus, retry) => {
        if (this.#state !== 'failed') return
        this.#retrySubmission = retry
        this.#view.reveal({ takesFocus })
      },
      onDrop: () => {
        if (this.#form.isWaiting) this.reset()
        this.#retrySubmission = undefined
      },
      onSpent: () => this.reset(),
    })
  }

  get state(): State {
    return this.#state
  }

  get token(): string | null {
    return this.#held.result?.token ?? null
  }

  get expiresAt(): number | null {
    return this.#held.result?.expiresAt ?? null
  }

  get error(): PowGateError | null {
    return this.#error ?? null
  }

  get form(): HTMLFormElement | null {
    return this.#form.form
  }

  set form(id: string | null) {
    reflect(this, 'form', id)
  }

  execute(): Promise<string> {
    const { result } = this.#held
    if (result !== undefined) return Promise.resolve(result.token)
    return this.#verification?.promise ?? this.#verify()
  }

  reset(): void {
    this.cancel()
    this.#held.drop()
    this.#enter('idle')
    this.#autoStart('load')
  }

  cancel(): void {
    this.#verification?.controller.abort()
    this.#verification = undefined
    if (this.#state === 'working') this.#enter('idle')
  }

  connectedCallback(): void {
    this.#isAttached = true
    takeOverProperties(this)
    unclobbered(document).addEventListener('visibilitychange', this.#onVisible)
    addEventListener('pageshow', this.#onPageShow)
    this.#form.attach()
    this.#held.resume()
    this.#beginAnew()
    this.#showState()
    this.#render()
    // Frameworks set attributes right after they insert the element, in the same task.
    setTimeout(() => {
      void this.#loadTexts()
      this.#reportMistakes()
      this.#isInView = unclobbered(document).querySelectorAll('pow-gate').length <= 1
      if (!this.#isInView) this.#viewport.observe(this)
      this.#autoStart('load')
    })
  }

  /** Called if an attribute has changed, or the element was moved, which reloads the solver's frame. The promise stays the same. */
  #beginAnew(): void {
    this.#verification?.controller.abort()
  }

  #reportMistakes(): void {
    if (!this.#isAttached || this.#state !== 'idle') return
    adviseOnMarkup(this)
    try {
      settingsOf(this)
    } catch (error) {
      this.#fail(error as PowGateError)
    }
  }

  /** Called by Node.moveBefore(): the element keeps its state, so a running verification continues. */
  connectedMoveCallback(): void {
    this.#form.attach()
  }

  /** Style sheets use `pow-gate:state(verified)`, in older browsers an attribute. */
  #showState(): void {
    try {
      const { states } = this.#internals!
      states.clear()
      states.add(this.#state)
    } catch {
      this.setAttribute('state', this.#state)
    }
  }

  async #loadTexts(): Promise<void> {
    const nearest = closestAround(this, '[lang]') ?? unclobbered(document).documentElement
    const lang = unclobbered(nearest).getAttribute('lang') ?? ''
    // The visitor's languages are read only if the page has none of the widget's.
    const code = languageCode([lang]) ?? languageCode(navigator.languages ?? []) ?? DEFAULT_LANGUAGE.code
    this.#wantedLanguage = code
    const use = (language: Language) => {
      this.#words.language = language
      this.#view.setLanguage(language)
      this.#render()
    }
    const fallback = setTimeout(() => this.#words.language ?? use(DEFAULT_LANGUAGE), LANGUAGE_MS_MAX)
    const language = await loadLanguage(code, assetsOfElement(this)) // never rejects
    clearTimeout(fallback)
    if (this.#wantedLanguage === code) use(language)
  }

  disconnectedCallback(): void {
    this.#isAttached = false
    unclobbered(document).removeEventListener('visibilitychange', this.#onVisible)
    removeEventListener('pageshow', this.#onPageShow)
    this.#form.detach()
    this.#viewport.disconnect()
    this.#held.pause()
    // A script that moves the element puts it back within the same task.
    setTimeout(() => this.#isAttached || this.cancel())
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (!this.#isAttached || before === after) return
    if (name === 'name') return this.#render()
    if (name === 'lang' || name === 'endpoint') void this.#loadTexts()
    if (this.#state === 'idle') return this.#autoStart('load')
    // A language changes no token or error. Another setting makes both void, but a form that waits still gets a token.
    if (name === 'lang') return
    if (this.#form.isWaiting && this.#verification) this.#beginAnew()
    else this.reset()
  }

  formAssociatedCallback(): void {
    if (!this.#isAttached) return
    this.#form.attach()
    this.#render()
  }

  formResetCallback(): void {
    this.reset()
  }

  formDisabledCallback(isDisabled: boolean): void {
    this.#isDisabled = isDisabled
    if (isDisabled && !this.#form.isJustSent) this.cancel() // Right after Send, the page only prevents a second one.
    this.#render()
    if (!isDisabled) this.#onVisible() // A disabled element renews no token, so a renewal may be due.
  }

  readonly #onVisible = () => {
    if (unclobbered(document).hidden) return
    this.#held.expireIfDue()
    if (autoOf(this) === 'off') return
    // The visitor may have logged in to a network. After a Send that failed, only "Try again" sends the form.
    const mayBeBack = this.#state === 'failed' && this.#error!.text === 'network' && !this.#retrySubmission
    if (this.#held.isRenewalDue || this.#state === 'expired' || mayBeBack) this.#start()
    else this.#autoStart('load')
  }

  /** The visitor came back from the page that the form led to, so the token was sent. */
  readonly #onPageShow = ({ persisted }: PageTransitionEvent) => {
    if (persisted) this.reset()
  }

  #autoStart(occasion: Auto): void {
    const isHidden = unclobbered(document).hidden // The page may never be shown.
    if (this.#state !== 'idle' || isHidden) return
    // With several elements, those out of view wait until their form is used.
    const auto = autoOf(this)
    if ((auto === 'load' && !this.#isInView ? 'focus' : auto) === occasion) this.#start()
  }

  /** Verifies, unless a verification runs already. The event `failed` tells its error. */
  #start(): void {
    if (this.#isAttached && this.#verification === undefined && !this.#isDisabled)
      this.#verify().catch(() => {})
  }

  /** Verifies. While a token is renewed, the state stays `verified` until the old one expires. */
  #verify(): Promise<string> {
    // Starts after `#verification` is set, because handlers of the first event may call cancel() or execute().
    const promise: Promise<string> = Promise.resolve().then(() => this.#run(verification))
    const verification: Verification = { controller: new AbortController(), promise }
    this.#verification = verification
    return promise
  }

  async #run(verification: Verification): Promise<string> {
    const { signal } = verification.controller
    try {
      throwIfAborted(signal)
      this.#error = undefined
      this.#words.reset()
      if (this.#state !== 'verified') this.#enter('working')
      this.#view.progress(0)
      const result = await obtainToken({
        ...settingsOf(this),
        signal,
        frameParent: this.shadowRoot!,
        onProgress: share => {
          if (signal.aborted) return
          this.#view.progress(share)
          this.#dispatch('progress', { share })
        },
        onWait: (reason, ms) => this.#words.setWait(reason, ms),
        onHashing: isHashing => this.#words.setHashing(isHashing),
      })
      throwIfAborted(signal)
      this.#verification = undefined
      this.#pass(result)
      return result.token
    } catch (error) {
      const beginsAnew = signal.aborted && this.#verification === verification // it was not cancelled
      if (beginsAnew) {
        verification.controller = new AbortController()
        return this.#run(verification)
      }
      if (!signal.aborted) {
        this.#verification = undefined
        this.#fail(error as PowGateError)
      }
      throw error
    }
  }

  #pass(result: FlowResult): void {
    this.#held.hold(result)
    this.#enter('verified')
    const { token, expiresAt, difficulty, solveTimeMs, mode, solved } = result
    const { solver, threads, tries } = solved
    this.#dispatch('verified', { token, expiresAt, difficulty, solveTimeMs, mode, solver, threads, tries })
  }

  #expire(): void {
    this.#enter(this.#verification === undefined ? 'expired' : 'working') // A renewal may be running already.
    this.#dispatch('expired', {})
    this.#renew()
  }

  #renew(): void {
    if (!unclobbered(document).hidden && autoOf(this) !== 'off') this.#start()
  }

  #fail(error: PowGateError): void {
    this.#error = error
    logFailure(this, error)
    // The old token is still valid after a failed renewal.
    if (this.#state !== 'verified') this.#enter('failed')
    const { code, message, status } = error
    this.#dispatch('failed', { code, message, status })
  }

  #enter(state: State): void {
    const isNew = state !== this.#state
    this.#state = state
    this.#retrySubmission = undefined
    clearInterval(this.#ticker)
    if (state === 'working') this.#ticker = setInterval(() => this.#words.countSecond(), 1000)
    else this.#words.reset()
    this.#showState()
    this.#render()
    if (isNew) this.#dispatch('statechange', { state })
  }

  #render(): void {
    const held = this.#held.result // read first, because its expiry changes the state
    const [state, words] = [this.#state, this.#words]
    const error = state === 'failed' ? this.#error : undefined
    const isWorking = state === 'working'
    const isOff = autoOf(this) === 'off'
    const waitsForClick = isOff && (state === 'idle' || state === 'expired')
    const key = isWorking
      ? words.chooseWorkingText()
      : (error?.text ?? (state === 'idle' && !isOff ? 'ready' : (state as TextKey)))
    // Only the site's owner can mend a wrong setup.
    const canRetry = error !== undefined && error.text !== 'setup'
    const button = canRetry
      ? words.retryButton(error.seconds)
      : waitsForClick
        ? words.text('start')
        : undefined
    this.#view.show({
      state,
      picture: words.pictureOf(state, key),
      ...words.linesOf(state, key, error),
      sending: words.language && isWorking && this.#form.isWaiting ? words.text('sending') : '',
      button: words.language && button,
      label: words.text('label'),
      isDisabled: this.#isDisabled,
      isNeeded: error !== undefined || (isWorking && words.isWaiting),
    })
    // The text of `required` asks to wait, which would be wrong where a verification starts only on a click.
    const complaint = error?.text ?? (waitsForClick ? 'press' : 'required')
    const advice = complaint === 'setup' ? `. ${words.text('tell')}` : ''
    const complaintText = words.text(complaint).replace('{b}', words.text('start')) + advice
    this.#form.setToken(held?.token, complaintText, this.#isDisabled)
  }

  #dispatch<Type extends keyof PowGateEventMap>(type: Type, detail: PowGateEventMap[Type]['detail']): void {
    this.dispatchEvent(new CustomEvent(type, { detail }))
  }
}

defineProperties(PowGateElement.prototype)

/** Loading the script twice does no harm. */
if (customElements.get('pow-gate') === undefined) customElements.define('pow-gate', PowGateElement)
