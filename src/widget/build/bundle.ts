/** The widget's sources -> the files that browsers load, and their compressed forms. The same sources give the same bytes. */

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type BuildOptions, build } from 'esbuild'
import {
  BROTLI_ENDING,
  GZIP_ENDING,
  MANIFEST_NAME,
  type WidgetFile,
  type WidgetManifest,
} from '../../http/assets.ts'

export interface BuiltFile extends Pick<WidgetFile, 'name' | 'fileName'> {
  readonly content: Buffer
}

const SOURCES = new URL('../', import.meta.url)
const TEXTS = new URL('texts/', SOURCES)
/** The folder of what `npm run build:modules` made. */
const DIST = new URL('../../dist/', SOURCES)
const HASH_LENGTH = 10
/** Files of compat/ that pages load from /compat/<name>.js. */
const COMPAT = ['turnstile', 'hcaptcha', 'recaptcha', 'redirect']

/**
 * Files are in the order of dependencies, because each script contains the names, with hashes, of the files that it loads.
 *
 * @throws Error with all messages of esbuild, warnings included
 */
export async function bundleWidget(): Promise<BuiltFile[]> {
  const files: BuiltFile[] = []
  const add = (name: string, content: Uint8Array | string) =>
    files.push(builtFile(name, Buffer.from(content)))
  // Scripts that widget.js loads by `import` have exports, so they are `esm`. The others are loaded as classic scripts, which may
  // have none: by new Worker(), importScripts() or <script>.
  const addScript = async (name: string, entry: string, format: 'iife' | 'esm') =>
    add(name, await bundle(entry, format, files))
  const addWasm = (name: string) => add(name, readFileSync(new URL(name, DIST)))
  addWasm('simd.wasm')
  addWasm('scalar.wasm')
  await addScript('worker.js', 'worker.ts', 'iife')
  await addScript('page.js', 'page.ts', 'esm')
  await addScript('gpu.js', 'gpu.ts', 'esm')
  const { fileName: src } = files.find(({ name }) => name === 'worker.js')!
  // The frame is never shown, and has no text, so it needs no `lang`.
  const frame = `<!doctype html><meta charset="utf-8"><title>powgate</title><script src="${src}"></script>\n`
  add('frame.html', frame)
  addWasm('hashwx.wasm')
  await addScript('hashwx-script.js', 'hashwx-script.ts', 'iife')
  await addScript('hashwx-page.js', 'hashwx-page.ts', 'esm')
  // An IIFE has no exports, so the script works in <script>, with or without type="module", and in an import.
  const widget = await bundle('element.ts', 'iife', files)
  // `document&&` lets a server that renders pages import the file, to no effect. It guards the first statement only, which has to be
  // the call of the IIFE, so the directive that esbuild writes before the call is taken out.
  add('widget.js', `globalThis.document&&${widget.replace(/^"use strict";/, '')}`)
  for (const name of COMPAT) await addScript(`compat-${name}.js`, `compat/${name}.ts`, 'iife')
  for (const file of readdirSync(TEXTS).sort()) {
    // The service answers by `name` too (http/assets.ts). Texts are loaded by it, because 40 hashes would make widget.js longer.
    add(`texts-${file}`, JSON.stringify(JSON.parse(readFileSync(new URL(file, TEXTS), 'utf8'))))
  }
  const types = builtFile('powgate.d.ts', readFileSync(new URL('powgate.d.ts', SOURCES)))
  files.push({ ...types, fileName: types.name }) // People download it, by its stable name.
  return files
}

function builtFile(name: string, content: Buffer): BuiltFile {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, HASH_LENGTH)
  const dot = name.lastIndexOf('.')
  return { name, fileName: `${name.slice(0, dot)}.${hash}${name.slice(dot)}`, content }
}

/** Replaces, in the sources, what assets.d.ts declares. */
function assetLiterals(files: readonly BuiltFile[]): Record<string, string> {
  const entries = files.flatMap(({ name, fileName, content }) => {
    const key = name.replace(/[.-](.)/g, (_, first: string) => first.toUpperCase())
    const pin = `sha256-${createHash('sha256').update(content).digest('base64')}`
    return [
      [`ASSET_NAMES.${key}`, `"${fileName}"`],
      [`ASSET_PINS.${key}`, `"${pin}"`],
    ] as const
  })
  return Object.fromEntries(entries)
}

async function bundle(
  entry: string,
  format: NonNullable<BuildOptions['format']>,
  built: readonly BuiltFile[],
): Promise<string> {
  const { outputFiles, warnings } = await build({
    absWorkingDir: fileURLToPath(SOURCES),
    entryPoints: [entry],
    bundle: true,
    write: false,
    format,
    minify: true,
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    define: assetLiterals(built),
    logLevel: 'silent', // an error is thrown with its text
  })
  // A warning such as `import.meta` outside a module would break the page.
  if (warnings.length > 0) throw new Error(warnings.map(({ text }) => `${entry}: ${text}`).join('\n'))
  return outputFiles[0]!.text
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  wasm: 'application/wasm',
  html: 'text/html; charset=utf-8',
  json: 'application/json',
  // Browsers show plain text. They would download TypeScript's own type.
  ts: 'text/plain; charset=utf-8',
}

/** Empties the folder first, or files of earlier builds would stay in it. */
export function writeWidget(folder: URL, files: readonly BuiltFile[]): WidgetManifest {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const written = files.map(({ name, fileName, content }) => {
    writeFileSync(new URL(fileName, folder), content)
    writeFileSync(new URL(fileName + BROTLI_ENDING, folder), brotliCompressSync(content))
    writeFileSync(new URL(fileName + GZIP_ENDING, folder), gzipSync(content, { level: 9 }))
    return { name, fileName, contentType: CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)]! }
  })
  const widget = files.find(({ name }) => name === 'widget.js')!
  const integrity = `sha384-${createHash('sha384').update(widget.content).digest('base64')}`
  const manifest: WidgetManifest = { integrity, files: written }
  writeFileSync(new URL(MANIFEST_NAME, folder), `${JSON.stringify(manifest, undefined, 2)}\n`)
  return manifest
}
