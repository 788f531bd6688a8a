/** `npm run bench:http`: the cases at full load and the latencies at fixed rates, or with --profile CPU profiles. */

import { existsSync } from 'node:fs'
import { tell, tool, UsageError } from '../../test/harness/command-line.ts'
import { OrderProcess, stopOnSignal } from '../../test/harness/processes.ts'
import { publish } from '../report/report.ts'
import { runEndpoint } from './cases.ts'
import type { Run } from './figures.ts'
import { latencies, profile } from './latency.ts'
import type { LoadOrder } from './load-process.ts'
import { OPTIONS, type Options } from './options.ts'
import { Probe } from './probe.ts'
import { aimsOf, progressLine, reportOf, rowsOf } from './report.ts'
import type { Rig } from './target.ts'

export const HTTP = tool({
  name: 'bench:http',
  about: `Measures the service over HTTP on loopback: CPU time per request of all its processes, with one worker, and of Redis,
beside a bare uWebSockets.js server that reads the bodies of the same requests and answers with as many bytes: at full
load (a closed loop). Then latencies at fixed rates, at which the worker is 25, 50 and 75 % busy, counted from when each request
was due (an open loop), with the delays of its event loop and its garbage collections.`,
  options: OPTIONS,
  example: '--endpoint verify --store embedded --profile',
  details: 'Ends with code 1 if any answer was not the expected one. Ctrl-C tells what was found by then.',
  run: bench,
})

async function bench(options: Options): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (!existsSync(new URL('../../dist/main.js', import.meta.url)))
    throw new UsageError('the service is not built: npm run -s build')
  const load = new OrderProcess<LoadOrder>(new URL('load-process.ts', import.meta.url))
  const rig = { options, load, probe: new Probe() }
  try {
    return options.profile ? await profiles(rig) : await measure(rig)
  } finally {
    load.kill()
  }
}

async function measure(rig: Rig): Promise<number> {
  const { options } = rig
  const runs: Run[] = []
  const tellResults = () => {
    const rows = rowsOf(runs)
    const figures = { node: process.version, options, rows, aims: aimsOf(rows) }
    publish(reportOf(rows, options), figures, options)
  }
  stopOnSignal(tellResults)
  const add = (more: readonly Run[]) => {
    for (const run of more) tell(progressLine(run))
    runs.push(...more)
  }
  for (let repetition = 0; repetition < options.repeat; repetition++) {
    for (const endpoint of options.endpoint) {
      add(await runEndpoint(rig, endpoint))
      for (const store of options.store) add(await latencies(rig, endpoint, store))
    }
  }
  tellResults()
  return runs.every(({ failure }) => failure === undefined) ? 0 : 1
}

async function profiles(rig: Rig): Promise<number> {
  const { options } = rig
  const files: string[] = []
  for (const endpoint of options.endpoint)
    for (const store of options.store) {
      const file = await profile(rig, endpoint, store)
      files.push(file)
      tell(`/${endpoint} on ${store}: ${file}`)
    }
  const about =
    'CPU profiles of the worker at full load; DevTools (Performance, Load profile) and speedscope read them.'
  publish([about, ...files].join('\n'), { profiles: files }, options)
  return 0
}
