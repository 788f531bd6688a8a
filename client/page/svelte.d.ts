import type { Component } from 'svelte'
import type { PowGateDetails, PowGateElement, PowGateProps } from './load.js'

export type * from './load.js'

type Handlers = { [Type in keyof PowGateDetails as `on${Type}`]?: (detail: PowGateDetails[Type]) => void }

export declare const PowGate: Component<
  PowGateProps & Handlers & { element?: PowGateElement },
  Record<string, never>,
  'element'
>
