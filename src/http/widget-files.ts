/** The built widget on disk: what the build writes (widget/build/), the service serves and the command line names. */

import { existsSync, readFileSync } from 'node:fs'

/** One file of the widget. */
export interface WidgetFile {
  /** Stable: `worker.js`. */
  readonly name: string
  /** On disk, and in the address that never changes its content: `worker.0123456789.js`. */
  readonly fileName: string
  /** First 10 hexadecimal characters of its SHA-256. */
  readonly hash: string
  readonly contentType: string
  readonly bytes: number
  readonly brotliBytes: number
  readonly gzipBytes: number
}

export interface WidgetManifest {
  /** Subresource integrity of widget.js: `sha384-...`. */
  readonly integrity: string
  readonly files: readonly WidgetFile[]
}

export interface Widget extends WidgetManifest {
  /** Where the files are. A compressed one has its coding's ending after the file's own name. */
  readonly folder: URL
}

export const MANIFEST_NAME = 'manifest.json'
export const BROTLI_ENDING = '.br'
export const GZIP_ENDING = '.gz'

/** Beside this module in the build; seen from the source, in the build that lies next to it. */
const FOLDERS = ['../widget/', '../../dist/widget/']

/** undefined if it is not built. */
export function findWidget(): Widget | undefined {
  for (const path of FOLDERS) {
    const folder = new URL(path, import.meta.url)
    const manifest = new URL(MANIFEST_NAME, folder)
    if (!existsSync(manifest)) continue
    return { ...(JSON.parse(readFileSync(manifest, 'utf8')) as WidgetManifest), folder }
  }
  return undefined
}
