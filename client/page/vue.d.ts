import type { DefineComponent, Ref } from 'vue'
import type { PowGateDetails, PowGateElement, PowGateProps } from './load.js'

export type * from './load.js'

/** By a template ref. */
export interface PowGateExposed {
  element: Ref<PowGateElement>
  execute: () => Promise<string>
  reset: () => void
}

type Emits = { [Type in keyof PowGateDetails]: (detail: PowGateDetails[Type]) => void }

export declare const PowGate: DefineComponent<
  PowGateProps,
  PowGateExposed,
  object,
  object,
  object,
  object,
  object,
  Emits
>
