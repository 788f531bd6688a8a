/** `npm run bench:solver`. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundleWidget } from '../../src/widget/build/bundle.ts'
import { launchBrowser, WEBGPU_IN_SOFTWARE } from '../../test/harness/browser.ts'
import { PageServer } from '../../test/harness/browser-pages.ts'
import { filter, ToolError, tell, text, toggle, tool, type Values } from '../../test/harness/command-line.ts'
import { installPeers } from '../packages.ts'
import { machine, OUTPUT, publish } from '../report/report.ts'
import { CONTENDER_NAMES, CONTENDERS, type ContenderName } from './contenders.ts'
import { figuresOf, gpuFigures, reportOf, type SolverFigures } from './report.ts'
import { call, checkAll, measureGpu, measureRates, measureSolves, type Sizes } from './runs.ts'
import { measureSlow, SLOW, SLOW_QUICK, slowReport } from './slow.ts'

const FULL: Sizes = {
  repeat: 9,
  warmUpMs: 300,
  measureMs: 600,
  retryMs: 120_000,
  difficulties: [16, 18, 20, 22],
  noncesPerDifficulty: 60,
}
const QUICK: Sizes = {
  repeat: 2,
  warmUpMs: 20,
  measureMs: 50,
  retryMs: 0,
  difficulties: [16, 18],
  noncesPerDifficulty: 3,
}

const OPTIONS = {
  filter: filter(
    CONTENDER_NAMES,
    name => CONTENDERS[name].label,
    'Only solvers whose name holds it, such as powgate or cap.',
  ),
  quick: toggle('Small sizes: whether it works, not how fast it is.'),
  gpu: text('KIND', 'Also the GPU, through WebGPU: card, or software where there is no card.'),
  slow: toggle('Instead: the whole widget, with 1, 1/4 and 1/16 of a core. Needs root, for a cgroup.'),
  ...OUTPUT,
}

export const SOLVER = tool({
  name: 'bench:solver',
  about: `Measures the solvers in headless Chromium: hashes per second on one thread and on all that the widget would take,
beside @cap.js/wasm, hash-wasm and WebCrypto in the same browser, in turn; and how long the widget's workers take to
solve. Installs the packages that it compares with into bench/ the first time.`,
  options: OPTIONS,
  example: '--filter powgate --filter cap',
  details: `\
Takes two to six minutes: what is measured while others use the machine is measured again. Ends with code 1 if any
solver finds a wrong counter.`,
  run: main,
})

async function main(options: Values<typeof OPTIONS>): Promise<number> {
  if (options.slow) {
    const sizes = options.quick ? SLOW_QUICK : SLOW
    const rows = await measureSlow(sizes)
    publish(slowReport(rows), rows, options)
    return 0
  }
  if (options.gpu !== undefined && !(options.gpu in GPU_FLAGS))
    throw new ToolError(`--gpu: expected one of ${Object.keys(GPU_FLAGS).join(', ')}`)
  installPeers()
  const figures = await bench(options.filter, options.quick ? QUICK : FULL, options.gpu)
  publish(reportOf(figures), figures, options)
  return 0
}

/** Of Chromium on Linux, where WebGPU is off by default. */
const GPU_FLAGS: Readonly<Record<string, readonly string[]>> = {
  card: ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--ignore-gpu-blocklist'],
  software: WEBGPU_IN_SOFTWARE,
}

async function bench(
  contenders: readonly ContenderName[],
  sizes: Sizes,
  gpu: string | undefined,
): Promise<SolverFigures> {
  const { loadAverage } = machine()
  const site = await startSite()
  const flags = gpu === undefined ? [] : GPU_FLAGS[gpu]!
  const browser = await launchBrowser({ flags }).catch(async error => {
    await site.stop()
    throw error
  })
  try {
    const page = await browser.newPage()
    await page.goto(site.origin())
    await page.waitForFunction(() => 'bench' in globalThis)
    const threads = await call(page, 'threadCount')
    await checkAll(page, contenders)
    tell('all solvers find the right counters')
    const rates = await measureRates(page, contenders, sizes, threads === 1 ? [1] : [1, threads])
    const solves = contenders.includes('simd') ? await measureSolves(page, sizes, threads) : []
    const ofGpu =
      gpu === undefined ? undefined : gpuFigures(gpu, await measureGpu(browser, site.origin(), sizes))
    return figuresOf({ chromium: browser.version(), loadAverage, sizes }, rates, solves, ofGpu)
  } finally {
    await browser.close()
    await site.stop()
  }
}

const HERE = fileURLToPath(new URL('.', import.meta.url))
const CAP_WASM = new URL('../node_modules/@cap.js/wasm/browser/cap_wasm_bg.wasm', import.meta.url)

/** By the name it is served as. */
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
  for (const name of ['gpu.js', 'simd.wasm', 'scalar.wasm']) site.add(`/${name}`, built(name))
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
