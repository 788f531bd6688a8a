/** Types of the element <pow-gate>. Add this file to your project. */

export type PowGateState = 'idle' | 'working' | 'verified' | 'failed' | 'expired'

export interface PowGateVerified {
  token: string
  /** Unix time by the page's clock, milliseconds. */
  expiresAt: number
  /** Leading zero bits. */
  difficulty: number
  solveTimeMs: number
  /** The place of the solver: in a worker of your origin, in a frame of the service, in a worker of a blob, or on the page's own thread. */
  mode: 'worker' | 'frame' | 'blob' | 'page'
  solver: 'wasm' | 'script' | 'gpu'
  threads: number
  /** The estimated number of hashes. */
  tries: number
}

export interface PowGateFailed {
  /** Does not change between versions. */
  code: string
  /** A text for developers, in English. */
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
  /** 0 to 1: the probability that a solver is done by now. */
  progress: CustomEvent<{ share: number }>
}

/** The attributes as properties, all but `name` and `text-KEY`. Every element has `lang`; `form` is below. */
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
  /** Unix milliseconds, by the page's clock. */
  readonly expiresAt: number | null
  readonly error: PowGateError | null
  get form(): HTMLFormElement | null
  /** Sets the attribute: the id of a form elsewhere. */
  set form(id: string | null)
  /** Resolves with the token; verifies first if there is none. Rejects with a PowGateError. */
  execute(): Promise<string>
  /** Drops the token, which counts once: call this after a script has sent the form. The next starts as `auto` says. */
  reset(): void
  /** Ends a running verification; a token stays. */
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

/** Texts that attributes `text-KEY` replace: powgate's docs/howto/add-a-language.md says where each is shown. */
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
  | 'rejected'
  | 'network'
  | 'unavailable'
  | 'setup'
  | 'tell'
  | 'offline'
  | 'online'
  | 'busy'
  | 'wait'
  | 'sending'
  | 'required'
  | 'press'

/** Attributes, as JSX writes them. */
export type PowGateAttributes = {
  'site-key': string
  /** Address of the service; by default the script's. */
  endpoint?: string
  /** When it starts: with the page (`load`), when the form is used (`focus`, the default), at Send (`submit`), or at a click (`off`). */
  auto?: 'load' | 'focus' | 'submit' | 'off'
  theme?: 'light' | 'dark'
  /** Shows nothing unless the visitor has to wait, or verification fails. */
  invisible?: boolean | ''
  /** Name of the form field; by default `powgate-token`. */
  name?: string
  disabled?: boolean
  /** Your own texts, as Turnstile's attributes of the same names. The token holds both, and /siteverify tells them to your backend. */
  action?: string
  cdata?: string
  lang?: string
  /** Id of a form elsewhere. */
  form?: string
  /** `/powgate-worker.js`, a copy on your page's origin. */
  'worker-src'?: string
  /** The only mode (see `PowGateVerified`) to try before `page`. */
  solver?: 'worker' | 'frame' | 'blob' | 'page'
  /** The largest number of threads to use. */
  threads?: number | string
  /** `off`: never. `on`: even if `threads` is set. `software`: even one that the CPU emulates, for tests. */
  gpu?: 'on' | 'off' | 'software'
} & { [Key in PowGateTextKey as `text-${Key}`]?: string }

declare global {
  interface HTMLElementTagNameMap {
    'pow-gate': PowGateElement
  }
}
