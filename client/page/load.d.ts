import type { PowGateAttributes, PowGateFailed, PowGateState, PowGateTextKey } from './dist/element.js'

export type * from './dist/element.js'

/** Adds the widget's script to the page, once. @param endpoint address of the service */
export declare function loadWidget(endpoint: string, options?: { nonce?: string | undefined }): void

/** What the components' events tell. */
export interface PowGateDetails {
  verified: { token: string; expiresAt: number }
  failed: PowGateFailed
  expired: Record<string, never>
  statechange: { state: PowGateState }
  progress: { share: number }
}

/** What the components of all frameworks take. */
export type PowGateProps = Omit<PowGateAttributes, `${string}-${string}` | 'endpoint'> & {
  siteKey: string
  /** Address of the service, from which the widget is loaded. */
  endpoint: string
  workerSrc?: string
  /** Of the page's Content-Security-Policy. */
  nonce?: string
  /** For style sheets and labels. */
  id?: string
} & { [Key in PowGateTextKey as `text${Capitalize<Key>}`]?: string }
