/** `npm run bench:http`. */

import { existsSync } from 'node:fs'
import { tell, tool, UsageError } from '../../test/harness/command-line.ts'
import { LoadProcess } from '../../test/harness/load/load-process.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { publish } from '../report/publish.ts'
import { isAnyMissed } from '../report/report.ts'
import { Bench } from './cases.ts'
import { hostReport, measureHost } from './host.ts'
import { Inside } from './inside.ts'
import { OPTIONS, type Options } from './options.ts'
import { PROFILE_LEGEND, type ProfileReport, profileTables } from './profile.ts'
import {
  aimsOf,
  latencyProgressLine,
  progressLine,
  reportCases,
  reportLatencies,
  reportOf,
} from './report.ts'

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

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function bench(options: Options): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  if (options.host) return await host(options)
  const load = new LoadProcess()
  const inside = new Inside(options, load)
  try {
    return options.profile ? await profile(options, inside) : await measure(options, load, inside)
  } finally {
    load.stop()
    inside.stop()
  }
}

async function measure(options: Options, load: LoadProcess, inside: Inside): Promise<number> {
  const bench = new Bench(options, load, inside, {
    onRun: run => tell(progressLine(run)),
    onLatencyRun: run => tell(latencyProgressLine(run)),
  })
  const figures = () => {
    const [cases, latencies] = [reportCases(bench.runs), reportLatencies(bench.latencyRuns)]
    return { node: process.version, options, cases, latencies, aims: aimsOf(cases, latencies) }
  }
  const tellResults = () => {
    const { cases, latencies } = figures()
    publish(reportOf(cases, latencies, options), figures(), options)
  }
  stopOnSignal(tellResults)
  await bench.runAll()
  tellResults()
  const { cases, latencies, aims } = figures()
  const isBad = [...cases, ...latencies].some(({ isOk }) => !isOk)
  return isBad || (options.check && isAnyMissed(aims)) ? 1 : 0
}

async function host(options: Options): Promise<number> {
  const found = await measureHost(options, tell)
  publish(hostReport(found), { node: process.version, options, host: found }, options)
  return 0
}

async function profile(options: Options, inside: Inside): Promise<number> {
  const profiles: ProfileReport[] = []
  const tellResults = () => {
    const parts = [...profileTables(profiles), { kind: 'text', text: PROFILE_LEGEND } as const]
    publish({ title: 'powgate over HTTP: profiles', intro: '', parts }, { profiles }, options)
  }
  stopOnSignal(tellResults)
  for (const endpoint of options.endpoint) {
    for (const store of options.store) {
      profiles.push(await inside.profile(endpoint, store))
      tell(`/${endpoint} on ${store}: ${profiles.at(-1)!.file}`)
    }
  }
  tellResults()
  return 0
}
