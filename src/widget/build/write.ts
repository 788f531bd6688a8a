/** Writes the built files to disk, each beside its compressed forms, and the manifest that names them. */

import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import {
  BROTLI_ENDING,
  GZIP_ENDING,
  MANIFEST_NAME,
  type WidgetFile,
  type WidgetManifest,
} from '../../http/assets.ts'
import type { BuiltFile } from './bundle.ts'

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  wasm: 'application/wasm',
  html: 'text/html; charset=utf-8',
  json: 'application/json',
  // Browsers show it as text; they would download a type of its own.
  ts: 'text/plain; charset=utf-8',
}

/** Empties the folder first: a file of an earlier build would be served for ever. */
export function writeWidget(folder: URL, files: readonly BuiltFile[]): WidgetManifest {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const written = files.map(file => writeFile(folder, file))
  const widget = files.find(({ name }) => name === 'widget.js')!
  const integrity = `sha384-${createHash('sha384').update(widget.content).digest('base64')}`
  const manifest: WidgetManifest = { integrity, files: written }
  writeFileSync(new URL(MANIFEST_NAME, folder), `${JSON.stringify(manifest, undefined, 2)}\n`)
  return manifest
}

function writeFile(folder: URL, { name, fileName, hash, content }: BuiltFile): WidgetFile {
  const compressed = { brotli: brotli(content), gzip: gzipSync(content, { level: 9 }) }
  writeFileSync(new URL(fileName, folder), content)
  writeFileSync(new URL(fileName + BROTLI_ENDING, folder), compressed.brotli)
  writeFileSync(new URL(fileName + GZIP_ENDING, folder), compressed.gzip)
  return {
    name,
    fileName,
    hash,
    contentType: CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)]!,
    bytes: content.length,
    brotliBytes: compressed.brotli.length,
    gzipBytes: compressed.gzip.length,
  }
}

function brotli(content: Buffer): Buffer {
  return brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  })
}
