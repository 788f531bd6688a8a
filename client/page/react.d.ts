import type {
  CSSProperties,
  DetailedHTMLProps,
  ForwardRefExoticComponent,
  HTMLAttributes,
  RefAttributes,
} from 'react'
import type { PowGateAttributes, PowGateElement, PowGateEventMap } from './dist/element.js'
import type { PowGateDetails, PowGateProps } from './load.js'

export type * from './load.js'

export interface PowGateHandlers {
  onVerified?: (detail: PowGateDetails['verified']) => void
  onFailed?: (detail: PowGateDetails['failed']) => void
  onExpired?: (detail: PowGateDetails['expired']) => void
  onStateChange?: (detail: PowGateDetails['statechange']) => void
  onProgress?: (detail: PowGateDetails['progress']) => void
}

export declare const PowGate: ForwardRefExoticComponent<
  PowGateProps &
    PowGateHandlers & { className?: string; style?: CSSProperties } & RefAttributes<PowGateElement>
>

type Handlers = { [Type in keyof PowGateEventMap as `on${Type}`]?: (event: PowGateEventMap[Type]) => void }

/** The element itself, for pages that no server renders: React 19 listens to its events only there. */
type ElementProps = Omit<
  DetailedHTMLProps<HTMLAttributes<PowGateElement>, PowGateElement>,
  keyof Handlers | keyof PowGateAttributes
> &
  PowGateAttributes &
  Handlers

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'pow-gate': ElementProps
    }
  }
}
