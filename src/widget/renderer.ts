/** What draws WebGL here, for instance "ANGLE (Apple, Apple M2, ...)" or "... SwiftShader ..."; undefined if unknown. */

const UNMASKED_RENDERER = 0x9246
const RENDERER = 0x1f01

/** Takes up to a tenth of a second where the GPU process has to start first, so workers ask, not the page. */
export function rendererName(): string | undefined {
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
