/**
 * The widget's build: reproducible bytes, file names by content, sizes within their limits. Its declared types in plain
 * TypeScript and in JSX.
 */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { bundleWidget, writeWidget } from '../../src/widget/build/bundle.ts'
import { typeErrors } from '../harness/packages.ts'
import { temporaryDir } from '../harness/temporary.ts'

const dir = temporaryDir('widget')
const folders = ['first', 'second'].map(name => join(dir, name))
const build = async (folder: string) => writeWidget(pathToFileURL(`${folder}/`), await bundleWidget())
const manifest = await build(folders[0]!)
await build(folders[1]!)

const read = (fileName: string) => readFileSync(join(folders[0]!, fileName))
const text = (name: string) => read(manifest.files.find(file => file.name === name)!.fileName).toString()

test('two builds make the same files', () => {
  const [first, second] = folders.map(folder => readdirSync(folder).sort())
  assert.deepEqual(first, second)
  for (const name of first!) assert.ok(read(name).equals(readFileSync(join(folders[1]!, name))), name)
  const expected = manifest.files.flatMap(({ fileName }) => [fileName, `${fileName}.br`, `${fileName}.gz`])
  assert.deepEqual(first, [...expected, 'manifest.json'].sort())
})

test('the manifest tells the truth: hashes, compressed forms, integrity', () => {
  assert.deepEqual(JSON.parse(read('manifest.json').toString()), manifest)
  for (const { name, fileName } of manifest.files) {
    const content = read(fileName)
    const hash = createHash('sha256').update(content).digest('hex').slice(0, 10)
    assert.equal(fileName, name === 'powgate.d.ts' ? name : name.replace(/\.\w+$/, `.${hash}$&`))
    assert.ok(brotliDecompressSync(read(`${fileName}.br`)).equals(content), name)
    assert.ok(gunzipSync(read(`${fileName}.gz`)).equals(content), name)
  }
  const integrity = createHash('sha384').update(text('widget.js')).digest('base64')
  assert.equal(manifest.integrity, `sha384-${integrity}`)
})

/**
 * Bytes after brotli, at most, of files that a visitor loads together: the page on the widget says 14 KB and 18 KB, the others keep a
 * file from growing unseen. Of several files whose names start alike, the largest counts.
 */
const LIMITS: readonly [bytesMax: number, ...names: string[]][] = [
  [14_336, 'widget.js'], // about what a server may send before it waits for the first acknowledgement (RFC 6928)
  ...['simd.wasm', 'scalar.wasm'].flatMap<[number, ...string[]]>(kernel => [
    [18_432, 'widget.js', 'frame.html', 'worker.js', kernel, 'texts-'],
    [18_432, 'widget.js', 'worker.js', kernel, 'texts-'],
    [18_432, 'widget.js', 'page.js', kernel, 'texts-'],
  ]),
  [9216, 'frame.html', 'worker.js', 'hashwx.wasm'],
  [9216, 'hashwx-page.js'],
  [4096, 'compat-'],
  [3072, 'gpu.js'],
  [1024, 'texts-'],
]

for (const [bytesMax, ...names] of LIMITS)
  test(`${names.join(', ')}: at most ${bytesMax} bytes`, () => {
    const bytesOf = (start: string) => {
      const found = manifest.files.filter(({ name }) => name.startsWith(start))
      return Math.max(...found.map(({ fileName }) => read(`${fileName}.br`).length))
    }
    const bytes = names.map(bytesOf).reduce((sum, size) => sum + size)
    assert.ok(bytes > 0 && bytes <= bytesMax, `${bytes} bytes`)
  })

const TYPES = new URL('../../src/widget/powgate.d.ts', import.meta.url)
cpSync(TYPES, join(dir, 'powgate.d.ts'))

function compile(name: string, source: string): string {
  writeFileSync(join(dir, name), source)
  return typeErrors(dir, name, '--lib es2022,dom --allowImportingTsExtensions --jsx preserve --types ')
}

test('TypeScript: the element is known by its name, its events by theirs', () => {
  const use = `
    import type { PowGateError } from './powgate.d.ts'
    const gate = document.querySelector('pow-gate')!
    gate.addEventListener('verified', event => { const token: string = event.detail.token })
    gate.addEventListener('failed', ({ detail }) => { const code: string = detail.code })
    gate.addEventListener('click', event => { event.preventDefault() })
    const token: Promise<string> = gate.execute()
    const state: 'idle' | 'working' | 'verified' | 'failed' | 'expired' = gate.state
    token.catch((error: PowGateError) => error.status?.toFixed())
    gate.reset()
    gate.cancel()`
  assert.equal(compile('use.ts', use), '')
  assert.match(compile('wrong.ts', `${use}\n gate.verify()`), /verify/)
})

test('JSX: attributes are checked', () => {
  const declare = `
    import type { PowGateAttributes } from './powgate.d.ts'
    declare global { namespace JSX { interface IntrinsicElements { 'pow-gate': PowGateAttributes } } }`
  const element = (attributes: string) => `${declare}\nexport const gate = <pow-gate ${attributes} />`
  assert.equal(compile('use.tsx', element('site-key="k" auto="focus" invisible text-idle="Wait"')), '')
  assert.match(compile('wrong.tsx', element('site-key="k" auto="soon"')), /soon/)
  assert.match(compile('missing.tsx', element('auto="focus"')), /site-key/)
})
