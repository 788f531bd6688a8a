/**
 * What the service learns about the browser: nothing, or seven yes-or-no answers, as the site asks with its challenge.
 * docs/privacy.md ("What leaves the browser") lists what is read.
 */

import type { Environment } from '../protocol/wire.ts'

/** Returns what draws WebGL: "ANGLE (Apple, Apple M2, ...)", "... SwiftShader ...". The first call takes 100 ms on a slow machine. */
export function rendererName(): string | undefined {
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

/** These names mean that there is no GPU, as on a server. The contract calls the flag of all of them `swiftShader`. */
const SOFTWARE_RENDERERS = /swiftshader|llvmpipe|software|basic render/i

export function environmentFlags(renderer: string | undefined): Required<Environment> {
  const { userAgent, userAgentData, plugins, languages, webdriver } = navigator as Navigator & {
    userAgentData?: { mobile: boolean }
  }
  const isMobile = userAgentData?.mobile ?? /Mobi|Android|iPad/.test(userAgent)
  return {
    webdriver: webdriver === true,
    // The browser says that it is Chrome, and is not. Web views of apps lack `chrome` too.
    chromeAbsent: /Chrome\/\d/.test(userAgent) && !/; wv\)/.test(userAgent) && !('chrome' in window),
    swiftShader: SOFTWARE_RENDERERS.test(renderer ?? ''),
    // Phones have no plugins.
    noPlugins: !isMobile && plugins?.length === 0,
    // Pages without a secure context cannot ask, so "denied" says nothing there.
    notificationDenied:
      isSecureContext && typeof Notification === 'function' && Notification.permission === 'denied',
    // A page's own `var screen` may hide it.
    zeroScreen: screen?.width === 0 || screen?.height === 0,
    noLanguages: !(languages?.length > 0),
  }
}
