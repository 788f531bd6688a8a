/** Serves what the browser loads: the bench's page and worker, the widget's pool, worker and kernels, the peers. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundleWidget } from '../../src/widget/build/bundle.ts'
import { PageServer } from '../../test/harness/browser-pages.ts'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const CAP_WASM = new URL('../node_modules/@cap.js/wasm/browser/cap_wasm_bg.wasm', import.meta.url)

/** By the name it is served as. */
const MODULES = {
  '/page.js': 'browser/page.ts',
  '/worker.js': 'browser/worker.ts',
  '/pool.js': '../../src/widget/solver/pool.ts',
}

/** @returns the server, whose page is at `/` */
export async function startSite(): Promise<PageServer> {
  const modules = await Promise.all(Object.values(MODULES).map(bundle))
  const widget = await bundleWidget()
  const site = await PageServer.start()
  Object.keys(MODULES).forEach((path, index) => {
    site.add(path, modules[index]!)
  })
  const built = (name: string) => widget.find(file => file.name === name)!.content
  site.add('/widget-worker.js', built('worker.js'))
  site.add('/simd.wasm', built('simd.wasm'))
  site.add('/scalar.wasm', built('scalar.wasm'))
  site.add('/cap.wasm', readFileSync(CAP_WASM))
  site.add('/', '<!doctype html><title>Solver bench</title><script type="module" src="/page.js"></script>')
  return site
}

async function bundle(entry: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    absWorkingDir: HERE,
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'esm',
    minify: true,
    target: 'es2022',
    logLevel: 'silent', // an error is thrown with its text
  })
  return outputFiles[0]!.contents
}
