/** `npm run bench:solver`: serves a page with all solvers, opens it in a browser, and has runs.ts measure them there. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundleWidget } from '../../src/widget/build/bundle.ts'
import { launchBrowser, WEBGPU_IN_SOFTWARE } from '../../test/harness/browser.ts'
import { PageServer } from '../../test/harness/browser-pages.ts'
import { tell, toggle, tool, UsageError, type Values } from '../../test/harness/command-line.ts'
import { DRIVEN_ENGINES, DrivenBrowser } from '../../test/harness/driven-browser.ts'
import { eventually } from '../../test/harness/eventually.ts'
import { installPeers } from '../packages.ts'
import { choice, choices } from '../report/options.ts'
import { machine, OUTPUT, publish } from '../report/report.ts'
import { CONTENDER_NAMES, type ContenderName } from './contenders.ts'
import { figuresOf, gpuFigures, reportOf } from './report.ts'
import type { Evaluating, Sizes } from './runs.ts'
import { call, checkAll, measureGpu, measureRates, measureSolves } from './runs.ts'
import { measureSlow, SLOW, SLOW_QUICK, slowReport } from './slow.ts'

const FULL: Sizes = {
  repeat: 9,
  warmUpMs: 300,
  measureMs: 600,
  retryMs: 120_000,
  difficulties: { sha256: [1, 16, 18, 20, 22], hashwx: [1, 16, 17, 18] },
  noncesPerDifficulty: 60,
}
const QUICK: Sizes = {
  repeat: 1,
  warmUpMs: 20,
  measureMs: 50,
  retryMs: 0,
  difficulties: { sha256: [1, 18], hashwx: [1, 16] },
  noncesPerDifficulty: 1,
}

const OPTIONS = {
  solver: choices(CONTENDER_NAMES, 'Only these solvers'),
  quick: toggle('Small sizes: whether it works, not how fast it is.'),
  browser: choice(['chromium', ...DRIVEN_ENGINES], 'Where to measure'),
  gpu: choice(['no', 'card', 'software'], 'Which GPU to measure too, through WebGPU in Chromium'),
  slow: toggle('Instead: the whole widget, with 1, 1/4 and 1/16 of a core. Needs root, for a cgroup.'),
  ...OUTPUT,
}

export const SOLVER = tool({
  name: 'bench:solver',
  about: `Measures the solvers of both puzzles in headless Chromium: hashes per second on one thread and on all that the widget would take,
beside @cap.js/wasm in the same browser, in turn; and how long the widget's workers take to
solve. Installs the packages that it compares with into bench/ the first time.`,
  options: OPTIONS,
  example: '--solver simd --solver cap',
  details: `\
Takes two to six minutes: what is measured while others use the machine is measured again. Ends with code 1 if any
solver finds a wrong counter.`,
  run: main,
})

async function main(options: Values<typeof OPTIONS>): Promise<number> {
  const { browser, gpu, solver: contenders } = options
  if (browser !== 'chromium' && (gpu !== 'no' || options.slow))
    throw new UsageError('--gpu and --slow: only in Chromium')
  if (options.slow) {
    const sizes = options.quick ? SLOW_QUICK : SLOW
    const rows = await measureSlow(sizes)
    publish(slowReport(rows), rows, options)
    return 0
  }
  installPeers()
  const sizes = options.quick ? QUICK : FULL
  const site = await startSite()
  try {
    const figures = await (browser === 'chromium'
      ? inChromium(contenders, sizes, site.origin(), gpu)
      : inDriven(contenders, sizes, site.origin(), browser))
    publish(reportOf(figures), figures, options)
  } finally {
    await site.stop()
  }
  return 0
}

/** Chromium on Linux has WebGPU off by default. */
const GPU_FLAGS = {
  no: [],
  card: ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--ignore-gpu-blocklist'],
  software: WEBGPU_IN_SOFTWARE,
}

type Contenders = readonly ContenderName[]

async function inChromium(contenders: Contenders, sizes: Sizes, url: string, gpu: keyof typeof GPU_FLAGS) {
  const browser = await launchBrowser({ flags: GPU_FLAGS[gpu] })
  try {
    const page = await browser.newPage()
    await page.goto(url)
    const figures = await measureAll(page, `Chromium ${browser.version()}`, contenders, sizes)
    if (gpu === 'no') return figures
    return { ...figures, gpu: gpuFigures(gpu, await measureGpu(browser, url, sizes)) }
  } finally {
    await browser.close()
  }
}

async function inDriven(contenders: Contenders, sizes: Sizes, url: string, engine: DrivenBrowser['engine']) {
  const browser = await DrivenBrowser.start(engine)
  try {
    await browser.open(url)
    const agent = await browser.evaluate<string>('navigator.userAgent')
    return await measureAll(browser, agent, contenders, sizes)
  } finally {
    await browser.stop()
  }
}

async function measureAll(page: Evaluating, browser: string, contenders: Contenders, sizes: Sizes) {
  const { loadAverage } = machine()
  await eventually(10_000, 'the bench', () => page.evaluate("'bench' in globalThis"))
  const threads = await call(page, 'threadCount')
  await checkAll(page, contenders) // throws
  tell('all solvers find the right counters')
  const rates = await measureRates(page, contenders, sizes, threads === 1 ? [1] : [1, threads])
  // The widget solves with its best kernel, so there is nothing to measure if that is filtered out.
  const solves = contenders.includes('simd') ? await measureSolves(page, sizes, threads) : []
  return figuresOf({ browser, loadAverage, sizes }, rates, solves)
}

const HERE = fileURLToPath(new URL('.', import.meta.url))
const HASHWX_SCRIPT = fileURLToPath(new URL('../../dist/hashwx-script.js', import.meta.url))
const CAP_WASM = new URL('../node_modules/@cap.js/wasm/browser/cap_wasm_bg.wasm', import.meta.url)

/** Entries by the path at which they are served. */
const MODULES = {
  '/page.js': 'browser/page.ts',
  '/worker.js': 'browser/worker.ts',
  '/pool.js': '../../src/widget/solver/pool.ts',
}

/** Serves what the browser loads, the bench's page at `/`: its worker, the widget's pool, worker and kernels, the peers. */
async function startSite(): Promise<PageServer> {
  const site = await PageServer.start()
  for (const [path, entry] of Object.entries(MODULES)) site.add(path, await bundle(entry))
  const widget = await bundleWidget()
  const built = (name: string) => widget.find(file => file.name === name)!.content
  site.add('/widget-worker.js', built('worker.js'))
  for (const name of ['gpu.js', 'simd.wasm', 'scalar.wasm', 'hashwx.wasm']) site.add(`/${name}`, built(name))
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
    // bench/ is a package of its own, which has no such import.
    alias: { '#hashwx-script': HASHWX_SCRIPT },
    logLevel: 'silent', // an error is thrown with its text
  })
  return outputFiles[0]!.contents
}
