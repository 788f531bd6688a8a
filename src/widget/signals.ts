/**
 * What the service learns about the browser: nothing, seven yes-or-no answers, or those and a hash, as the site asks with its
 * challenge. docs/reference/widget.md ("What leaves the browser") lists what is read.
 */

import type { Environment, Solution } from '../protocol/wire.ts'
import type { Signals, Traits } from './solver/job.ts'
import { sha256Hex } from './solver/sha256.ts'

/** The first time, on a slow machine, the time zone takes 50 ms, the renderer 100 ms. */
export function slowTraits(signals: Signals): Traits {
  return {
    timeZone: signals === 'all' ? timeZoneName() : undefined,
    renderer: signals === 'none' ? undefined : rendererName(),
  }
}

function timeZoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** Such as "ANGLE (Apple, Apple M2, ...)" or "... SwiftShader ...". */
function rendererName(): string | undefined {
  const UNMASKED_RENDERER = 0x9246
  const RENDERER = 0x1f01
  try {
    const canvas =
      typeof OffscreenCanvas === 'function' ? new OffscreenCanvas(1, 1) : document.createElement('canvas')
    const context = canvas.getContext('webgl') as WebGLRenderingContext | null
    if (context === null) return undefined
    const isUnmasked = context.getExtension('WEBGL_debug_renderer_info') !== null
    const name: unknown = context.getParameter(isUnmasked ? UNMASKED_RENDERER : RENDERER)
    context.getExtension('WEBGL_lose_context')?.loseContext()
    return String(name)
  } catch {
    return undefined
  }
}

interface Hints {
  readonly deviceMemory?: number
  readonly userAgentData?: { readonly mobile: boolean }
}

/** There is no GPU, as on a server. */
const SOFTWARE_RENDERERS = /swiftshader|llvmpipe|software|basic render/i

function environmentFlags(renderer: string | undefined): Required<Environment> {
  const { userAgent, plugins, languages, webdriver } = navigator
  const isMobile = isMobileBrowser()
  return {
    webdriver: webdriver === true,
    // Not Chrome, though it says so. Web views of apps lack `chrome` too.
    chromeAbsent: /Chrome\/\d/.test(userAgent) && !/; wv\)/.test(userAgent) && !('chrome' in window),
    swiftShader: SOFTWARE_RENDERERS.test(renderer ?? ''),
    // Phones have no plugins.
    noPlugins: !isMobile && plugins?.length === 0,
    notificationDenied: isNotificationDenied(),
    // A page's own `var screen` may hide it.
    zeroScreen: screen?.width === 0 || screen?.height === 0,
    noLanguages: !(languages?.length > 0),
  }
}

function isMobileBrowser(): boolean {
  const { userAgentData } = navigator as Navigator & Hints
  return userAgentData?.mobile ?? /Mobi|Android|iPad/.test(navigator.userAgent)
}

/** Without a secure context no page may ask, so "denied" says nothing. */
function isNotificationDenied(): boolean {
  return isSecureContext && typeof Notification === 'function' && Notification.permission === 'denied'
}

/** No more than the site asked for: without a fingerprint, the contract's hash is of the nonce, which tells nothing. */
export function signalsFor(
  { nonce, signals }: { nonce: string; signals: Signals },
  siteKey: string,
  traits: Traits,
): Pick<Solution, 'fingerprintHash' | 'environment'> {
  const environment = signals === 'none' ? {} : { environment: environmentFlags(traits.renderer) }
  const hash = signals === 'all' ? fingerprintHash(traits, siteKey) : sha256Hex(nonce)
  return { ...environment, fingerprintHash: hash }
}

/**
 * Of traits of browser and device, all of which many visitors share; and of the site and the day, so that no two sites or days
 * see the same hash.
 */
function fingerprintHash({ renderer, timeZone }: Traits, siteKey: string): string {
  const { userAgent, languages, platform, hardwareConcurrency, maxTouchPoints } = navigator
  const { deviceMemory } = navigator as Navigator & Hints
  const traits: unknown[] = [
    siteKey,
    new Date().toISOString().slice(0, 10),
    userAgent,
    languages,
    platform,
    hardwareConcurrency,
    deviceMemory,
    maxTouchPoints,
    [screen?.width, screen?.height, screen?.colorDepth, devicePixelRatio],
    timeZone ?? timeZoneName(),
    renderer,
  ]
  return sha256Hex(JSON.stringify(traits))
}
