/** Traits that a browser reads slowly the first time. On a slow machine the time zone takes 50 ms, the renderer 100 ms. */

import type { Traits } from './solver/job.ts'

const UNMASKED_RENDERER = 0x9246
const RENDERER = 0x1f01

export function slowTraits(): Traits {
  return { timeZone: timeZoneName(), renderer: rendererName() }
}

export function timeZoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** What draws WebGL here, for instance "ANGLE (Apple, Apple M2, ...)" or "... SwiftShader ..."; undefined if unknown. */
function rendererName(): string | undefined {
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
