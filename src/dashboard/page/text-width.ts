/** How wide a text of a plot is, which depends on the reader's fonts. */

const context = document.createElement('canvas').getContext('2d')
const FALLBACK_WIDTH = 8

/** In pixels, in the font that the style sheet gives to a plot's texts. */
export function textWidth(text: string): number {
  if (context === null) return FALLBACK_WIDTH * text.length
  const rootPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
  context.font = `${0.75 * rootPx}px system-ui, sans-serif`
  return context.measureText(text).width
}
