/**
 * What the widget sends to the service about the browser: nothing, seven yes-or-no answers, or those and one hash, as the site
 * asks with its challenge. docs/reference/widget.md ("What leaves the browser") lists what they are made from. Nothing is stored,
 * and no value that goes into the hash is sent.
 */

import type { Environment, Solution } from '../protocol/wire.ts'
import type { Signals, Traits } from './solver/job.ts'
import { sha256Hex } from './solver/sha256.ts'

/** Traits that a browser reads slowly the first time. On a slow machine the time zone takes 50 ms, the renderer 100 ms. */
export function slowTraits(signals: Signals): Traits {
  return {
    timeZone: signals === 'all' ? timeZoneName() : undefined,
    renderer: signals === 'none' ? undefined : rendererName(),
  }
}

function timeZoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** What draws WebGL here, for instance "ANGLE (Apple, Apple M2, ...)" or "... SwiftShader ..."; undefined if unknown. */
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

/** Renderers in software: there is no GPU, as on a server. */
const SOFTWARE_RENDERERS = /swiftshader|llvmpipe|software|basic render/i

/** @param renderer what draws WebGL, if known */
function environmentFlags(renderer: string | undefined): Required<Environment> {
  const { userAgent, plugins, languages, webdriver } = navigator
  const isMobile = isMobileBrowser()
  return {
    webdriver: webdriver === true,
    // The browser claims to be Chrome, but lacks what every Chrome page has; web views of apps lack it too.
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

/** Without a secure context no page may ask, so there "denied" says nothing about the visitor. */
function isNotificationDenied(): boolean {
  return isSecureContext && typeof Notification === 'function' && Notification.permission === 'denied'
}

/**
 * What goes with a solution about the browser: no more than the site asked for. Without a fingerprint, the contract's hash is of
 * the nonce, which tells nothing.
 */
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
 * SHA-256 of traits that distinguish kinds of browser and device; many visitors share each value. With the site and the day, so
 * that no two sites or days see the same.
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
