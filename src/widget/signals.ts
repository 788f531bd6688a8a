/**
 * What the widget sends to the service about the browser: seven yes-or-no answers and one hash. docs/widget.md ("What leaves
 * the browser") lists what they are made from. Nothing is stored, and no value that goes into the hash is sent.
 */

import type { Environment } from '../protocol/wire.ts'
import type { Traits } from './solver/job.ts'
import { sha256Hex } from './solver/sha256.ts'
import { timeZoneName } from './traits.ts'

interface Hints {
  readonly deviceMemory?: number
  readonly userAgentData?: { readonly mobile: boolean }
}

/** Renderers in software: there is no GPU, as on a server. */
const SOFTWARE_RENDERERS = /swiftshader|llvmpipe|software|basic render/i

/** @param renderer what draws WebGL, if known */
export function environmentFlags(renderer: string | undefined): Required<Environment> {
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
    zeroScreen: screen.width === 0 || screen.height === 0,
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

/** SHA-256 of traits that distinguish kinds of browser and device; many visitors share each value. */
export function fingerprintHash({ renderer, timeZone }: Traits): string {
  const { userAgent, languages, platform, hardwareConcurrency, maxTouchPoints } = navigator
  const { deviceMemory } = navigator as Navigator & Hints
  const traits: unknown[] = [
    userAgent,
    languages,
    platform,
    hardwareConcurrency,
    deviceMemory,
    maxTouchPoints,
    [screen.width, screen.height, screen.colorDepth, devicePixelRatio],
    timeZone ?? timeZoneName(),
    renderer,
  ]
  return sha256Hex(JSON.stringify(traits))
}
