/** The built widget on disk: written by the build (widget/build/), served by the service, named by the command line. */

import { existsSync, readFileSync } from 'node:fs'

/** One file of the widget. */
export interface WidgetFile {
  /** A stable name: `worker.js`. */
  readonly name: string
  /** The name on disk, and in an address whose content never changes: `worker.0123456789.js`. */
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
  /** The folder of the files. The name of a compressed file ends in its coding's ending. */
  readonly folder: URL
}

export const MANIFEST_NAME = 'manifest.json'
export const BROTLI_ENDING = '.br'
export const GZIP_ENDING = '.gz'

/** Next to this module in the build; when run from source, in the build. */
const FOLDERS = ['../widget/', '../../dist/widget/']

/** undefined if the widget is not built. */
export function findWidget(): Widget | undefined {
  for (const path of FOLDERS) {
    const folder = new URL(path, import.meta.url)
    const manifest = new URL(MANIFEST_NAME, folder)
    if (!existsSync(manifest)) continue
    return { ...(JSON.parse(readFileSync(manifest, 'utf8')) as WidgetManifest), folder }
  }
  return undefined
}
