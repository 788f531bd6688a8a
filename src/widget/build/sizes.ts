/** Sizes of what a visitor loads, and their limits. */

import type { WidgetManifest } from '../../http/assets.ts'

/** About what a server may send before it waits for the first acknowledgement (RFC 6928). */
export const WIDGET_BYTES_MAX = 14_336

export const VISIT_BYTES_MAX = 18_432

/** The limit of each vendor's script, which is loaded besides the widget. */
export const COMPAT_BYTES_MAX = 4096

/** The limit of each language. */
export const TEXTS_BYTES_MAX = 1024

export const GPU_BYTES_MAX = 3072

/** The limit of what a visitor loads besides for HashWX, with WebAssembly, or on the page's own thread. */
export const HASHWX_BYTES_MAX = 9216
export const HASHWX_FILES = [['hashwx.html', 'hashwx.js', 'hashwx.wasm'], ['hashwx-page.js']] as const

/** Files by mode, without the texts of one language. A browser loads at most one kernel. */
export const VISITS: Readonly<Record<string, readonly string[]>> = {
  'in the frame': ['widget.js', 'frame.html', 'worker.js', 'simd.wasm'],
  'in the frame, no SIMD': ['widget.js', 'frame.html', 'worker.js', 'scalar.wasm'],
  'in a worker': ['widget.js', 'worker.js', 'simd.wasm'],
  'in a worker, no SIMD': ['widget.js', 'worker.js', 'scalar.wasm'],
  'in the page': ['widget.js', 'page.js', 'simd.wasm'],
  'in the page, no SIMD': ['widget.js', 'page.js', 'scalar.wasm'],
}

interface Visit {
  readonly about: string
  readonly files: readonly string[]
  /** Compressed with brotli. */
  readonly bytes: number
}

/** Largest first. */
export function visitsOf({ files }: Pick<WidgetManifest, 'files'>): Visit[] {
  const bytesOf = (name: string) => files.find(file => file.name === name)!.brotliBytes
  const texts = files.filter(({ name }) => name.startsWith('texts-'))
  const longest = texts.sort((a, b) => b.brotliBytes - a.brotliBytes)[0]!.name
  return Object.entries(VISITS)
    .map(([about, names]) => ({ about, files: [...names, longest] }))
    .map(({ about, files }) => ({ about, files, bytes: sum(files.map(bytesOf)) }))
    .sort((a, b) => b.bytes - a.bytes)
}

export function summary([largest]: readonly Visit[]): string {
  return `widget: ${kilobytes(largest!.bytes)} compressed for a visitor (limit ${kilobytes(VISIT_BYTES_MAX)})\n`
}

export function report({ files }: WidgetManifest, visits: readonly Visit[]): string {
  const sizes = files.map(({ name, bytes, brotliBytes }) => row(name, bytes, brotliBytes))
  const loads = visits.map(
    ({ about, files, bytes }) => `  ${about.padEnd(24)}${number(bytes)}  ${files.join(' ')}`,
  )
  return `${row('file', 'raw', 'brotli')}\n${sizes.join('\n')}\n\nA visitor who solves\n${loads.join('\n')}\n\n`
}

function row(name: string, raw: number | string, brotli: number | string): string {
  return `  ${name.padEnd(16)}${number(raw)}${number(brotli)}`
}

function number(value: number | string): string {
  return String(value).padStart(8)
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1).replace(/\.0$/, '')} KB`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
