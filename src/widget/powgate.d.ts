/** Types of the element <pow-gate>, which /widget.js defines. Add this file to your project, or copy what you need. */

export type PowGateState = 'idle' | 'working' | 'verified' | 'failed' | 'expired'

export interface PowGateVerified {
  token: string
  /** Unix time by the service's clock, milliseconds. */
  expiresAt: number
  /** Leading zero bits. */
  difficulty: number
  solveTimeMs: number
  mode: 'worker' | 'frame' | 'blob' | 'page'
  solver: 'wasm' | 'script' | 'gpu'
  threads: number
  /** Hashes computed by all threads and the GPU together; an estimate. */
  tries: number
}

export interface PowGateFailed {
  /** Stable: a code of the service or of the widget. */
  code: string
  /** For the integrator, in English. */
  message: string
  /** HTTP status, if the service answered. */
  status?: number | undefined
}

export interface PowGateError extends Error {
  readonly name: 'PowGateError'
  readonly code: string
  readonly status: number | undefined
}

/** None of the events bubbles. */
export interface PowGateEventMap {
  verified: CustomEvent<PowGateVerified>
  failed: CustomEvent<PowGateFailed>
  expired: CustomEvent<Record<string, never>>
  statechange: CustomEvent<{ state: PowGateState }>
  /** `share`, 0 to 1: the probability that a solver is done by now. */
  progress: CustomEvent<{ share: number }>
}

/** The attributes of these names. */
export interface PowGateProperties {
  siteKey: string
  endpoint: string
  auto: string
  theme: string
  invisible: boolean
  disabled: boolean
  action: string
  cdata: string
  workerSrc: string
  solver: string
  threads: string
  gpu: string
}

export interface PowGateElement extends HTMLElement, PowGateProperties {
  readonly state: PowGateState
  readonly token: string | null
  readonly expiresAt: number | null
  readonly error: PowGateError | null
  get form(): HTMLFormElement | null
  /** Sets the attribute, the id of a form elsewhere in the page. */
  set form(id: string | null)
  /** Resolves with the token, and verifies first if there is none. Rejects with a PowGateError. */
  execute(): Promise<string>
  /** Drops the token, for instance after it was sent; a new one starts as `auto` says. */
  reset(): void
  /** Ends a running verification. */
  cancel(): void
  addEventListener<Type extends keyof PowGateEventMap>(
    type: Type,
    listener: (this: PowGateElement, event: PowGateEventMap[Type]) => unknown,
    options?: boolean | AddEventListenerOptions,
  ): void
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | AddEventListenerOptions,
  ): void
}

/** Keys of the texts that attributes `text-KEY` replace. */
export type PowGateTextKey =
  | 'label'
  | 'ready'
  | 'idle'
  | 'working'
  | 'slow'
  | 'verified'
  | 'expired'
  | 'start'
  | 'retry'
  | 'cancel'
  | 'rejected'
  | 'network'
  | 'unavailable'
  | 'setup'
  | 'offline'
  | 'busy'
  | 'wait'
  | 'required'
  | 'press'

/** Attributes as JSX writes them. */
export type PowGateAttributes = {
  'site-key': string
  /** Address of the service; by default the one the script came from. */
  endpoint?: string
  /** When to start; `focus` by default: when the form is used. */
  auto?: 'load' | 'focus' | 'submit' | 'off'
  theme?: 'light' | 'dark'
  /** Shows nothing unless the visitor has to wait, or verification fails. */
  invisible?: boolean | ''
  /** Name of the form field; `powgate-token` by default. */
  name?: string
  disabled?: boolean
  /** What the visitor is about to do, and data of the page. A token tells them to the backend by /siteverify. */
  action?: string
  cdata?: string
  lang?: string
  /** Id of the form, if the element stands elsewhere. */
  form?: string
  /** A copy of the worker file on the page's own origin, named `powgate-worker.js`. */
  'worker-src'?: string
  /** The only mode to solve in, besides the page's own thread as the last resort. */
  solver?: 'worker' | 'frame' | 'blob' | 'page'
  /** The most threads to solve with. */
  threads?: number | string
  /** `off` leaves the visitor's GPU alone; `on` uses it for hard challenges even if `threads` is set. */
  gpu?: 'on' | 'off' | 'software'
} & { [Key in PowGateTextKey as `text-${Key}`]?: string }

declare global {
  interface HTMLElementTagNameMap {
    'pow-gate': PowGateElement
  }
}
