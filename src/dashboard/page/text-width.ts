/** Measures the texts of a plot, whose width depends on the viewer's fonts. */

const context = document.createElement('canvas').getContext('2d')
const FALLBACK_WIDTH = 8

/** Width in pixels, in the font of the style sheet for texts in plots. */
export function textWidth(text: string): number {
  if (context === null) return FALLBACK_WIDTH * text.length
  const rootPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
  context.font = `${0.75 * rootPx}px system-ui, sans-serif`
  return context.measureText(text).width
}
