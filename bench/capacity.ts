/**
 * `npm run bench:capacity`: what a load takes and what an attack costs, from what other benches have measured.
 *
 * A visitor makes one challenge, one verification and one redemption. Cores of workers and of Redis are planned to be busy 60 % of
 * the time. Tries are geometric with mean 2^bits, whatever was tried before.
 */

import { readFileSync } from 'node:fs'
import { ACCEPTED_MS } from '../src/domain/address-log.ts'
import { text, tool, UsageError, type Values } from '../test/harness/command-line.ts'
import { ENDPOINTS } from '../test/harness/load/traffic.ts'
import type { Spread } from '../test/harness/measure.ts'
import { OUTPUT, publish } from './report/publish.ts'
import { left, right, table } from './report/report.ts'
import { PRICES } from './simulator/scenario.ts'

const OPTIONS = {
  http: text('FILE', 'What npm run -s bench:http -- --json printed. Needed.'),
  store: text('FILE', 'What npm run -s bench:store -- --json printed, for the memory of Redis.'),
  solver: text('FILE', 'What npm run -s bench:solver -- --json printed, for attackers with browsers.'),
  ...OUTPUT,
}

export const CAPACITY = tool({
  name: 'bench:capacity',
  about: 'Computes what a load takes and what an attack costs, from what other benches have measured.',
  options: OPTIONS,
  example: '--http http.json --store store.json',
  details: 'The native hash rate is a published one (bench/simulator/prices.json).',
  run: main,
})

const BUSY_MAX = 0.6
/** Visitors a second. */
const RATES = [10_000, 100_000, 1_000_000]
const DIFFICULTIES = [16, 18, 20, 22, 24, 26, 28]

async function main(options: Values<typeof OPTIONS>): Promise<number> {
  if (options.http === undefined)
    throw new UsageError('--http: expected a file, since all else is computed from it')
  const http = read(options.http)
  const cpuUs = (store: string, figure: string) =>
    ENDPOINTS.reduce((sum, endpoint) => {
      const found = http.cases.find((one: Case) => one.endpoint === endpoint && one.server === store)
      return sum + (found?.figures[figure]?.median ?? Number.NaN)
    }, 0)
  const [embeddedUs, workerUs, redisUs] = [
    cpuUs('embedded', 'cpuUs'),
    cpuUs('redis', 'cpuUs'),
    cpuUs('redis', 'redisUs'),
  ]
  const ourUs = Number.isNaN(redisUs) ? embeddedUs : workerUs + redisUs
  if (Number.isNaN(ourUs)) throw new UsageError('--http: expected all three endpoints on at least one store')
  const addressBytes = options.store && read(options.store).memory.bytesPerActiveAddress.typical
  const browser = options.solver && read(options.solver).rates.find(isSimdAlone)?.hashesPerSecond.median
  const cores = (rate: number, us: number) => Math.max(1, Math.ceil((rate * us) / 1e6 / BUSY_MAX))
  const loads = RATES.map(rate => ({
    rate,
    embeddedCores: cores(rate, embeddedUs),
    workerCores: cores(rate, workerUs),
    redisPrimaries: cores(rate, redisUs),
    redisGib: addressBytes === undefined ? undefined : (rate * (ACCEPTED_MS / 1000) * addressBytes) / 2 ** 30,
  }))
  const attacks = DIFFICULTIES.map(bits => ({
    bits,
    browserTimesOurs: browser === undefined ? undefined : (2 ** bits / browser) * (1e6 / ourUs),
    nativeTimesOurs: (2 ** bits / (PRICES.threadMhs * 1e6)) * (1e6 / ourUs),
  }))
  const figure = (value: number | undefined) =>
    value === undefined || Number.isNaN(value) ? '-' : Number(value.toPrecision(3)).toLocaleString('en')
  const report = {
    title: 'powgate: capacity',
    intro: `CPU time of a visitor: ${figure(embeddedUs)} us with the embedded store; with Redis ${figure(workerUs)} us, and ${figure(redisUs)} us of Redis.
Cores are planned to be busy ${BUSY_MAX * 100} % of the time. Memory: every visitor from an address of its own, kept for five minutes.
An attack is the mean CPU time of one accepted proof, as a multiple of ours.`,
    parts: [
      table<(typeof loads)[number]>(
        'What a load takes',
        [
          [right('visitors/s'), one => one.rate.toLocaleString('en')],
          [right('cores, embedded store'), one => figure(one.embeddedCores)],
          [right('cores, Redis'), one => figure(one.workerCores)],
          [right('Redis primaries'), one => figure(one.redisPrimaries)],
          [right('Redis GiB'), one => figure(one.redisGib)],
        ],
        loads,
      ),
      table<(typeof attacks)[number]>(
        'What an accepted proof costs an attacker, times what it costs us',
        [
          [left('bits'), one => String(one.bits)],
          [right('browser, WASM SIMD'), one => figure(one.browserTimesOurs)],
          [right('native, AVX-512'), one => figure(one.nativeTimesOurs)],
        ],
        attacks,
      ),
    ],
  }
  publish(report, { embeddedUs, workerUs, redisUs, loads, attacks }, options)
  return 0
}

interface Case {
  readonly endpoint: string
  readonly server: string
  readonly figures: Readonly<Record<string, Spread>>
}

const isSimdAlone = (one: { contender: string; threads: number }) =>
  one.contender === 'simd' && one.threads === 1

function read(file: string) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${file}: ${(error as Error).message}`)
  }
}
