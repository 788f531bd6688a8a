/** The service that case 9 overloads, what is observed meanwhile, and the figures of repeated measurements. */

import { SETTINGS } from '../../../../src/config/settings.ts'
import { createApiKey } from '../../../../src/sites/sites.ts'
import { noteSecret } from '../../../harness/canaries.ts'
import { LoadProcess } from '../../../harness/load/load-process.ts'
import { FREE, type TrafficTarget } from '../../../harness/load/traffic.ts'
import { storeEpochOf, VISITED_SETTINGS } from '../../../harness/load/visitor-requests.ts'
import type { VisitorsResult, VisitorsSpec } from '../../../harness/load/visitors.ts'
import { spreadOf } from '../../../harness/measure.ts'
import { freePort } from '../../../harness/ports.ts'
import { workerPids } from '../../../harness/processes.ts'
import { lifetimesOf, type StoreKind, TEST_SECRET, type TestService } from '../../../harness/service.ts'
import { type Run, SHEDS_AS_SHIPPED } from '../run.ts'

export const TARGET_MS = Number(SETTINGS.POWGATE_OVERLOAD_MS.fallback)

/** A closed loop that keeps one worker busy, also while it waits for Redis, with hardly any queue. */
export const CAPACITY_CONNECTIONS = 128
/** One key redeems at most a million tokens a minute. */
const API_KEYS = 8

export interface Stage {
  readonly run: Run
  readonly rows: Rows
  readonly load: LoadProcess
  readonly target: TrafficTarget
  /** Settings of the load, without the number of visitors and the duration. */
  readonly base: Omit<VisitorsSpec, 'connections' | 'visitorsPerSecond' | 'warmUpMs' | 'measureMs'>
  /** Checks what must hold for the whole time, and stops everything. */
  end(): Promise<void>
}

/** Visitors' data leave the store after two minutes, so the store has its full size for most of a run. */
export const SHORT_LIVES = { POWGATE_CHALLENGE_SECONDS: '30', POWGATE_TOKEN_SECONDS: '30' }

const settings = (adminPort: number) => ({
  ...VISITED_SETTINGS,
  ...SHEDS_AS_SHIPPED,
  POWGATE_WORKERS: '1',
  POWGATE_ADMIN_PORT: String(adminPort),
  // Requests of closed loops are made for challenges of this lifetime.
  POWGATE_CHALLENGE_SECONDS: '600',
  // So many visitors leave more in ten minutes than the default bound; a full embedded store refuses.
  POWGATE_STATE_MAX_MB: '8192',
  // This case does not check the usual deadline, which a busy machine may miss.
  POWGATE_STORE_DEADLINE_MS: '5000',
})

/** @param env further settings */
export async function startStage(
  run: Run,
  kind: StoreKind,
  env: Readonly<Record<string, string>> = {},
): Promise<Stage> {
  const adminPort = await freePort()
  const service = await run.service(kind, { ...settings(adminPort), ...env })
  const site = await service.createSite({ difficulty: FREE })
  const storeEpoch = await storeEpochOf(service.url, site)
  const load = new LoadProcess()
  run.defer(() => load.stop())
  const pids = workerPids(service.pid)
  const unready: string[] = []
  const look = async () => {
    const { ok, status } = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
    if (!ok) unready.push(`status ${status}`)
  }
  const stopLooking = run.every(100, () => look().catch(error => unready.push(String(error.cause ?? error))))
  const rows = new Rows()
  run.defer(() => rows.tell(run)) // a case that was stopped
  const end = async () => {
    stopLooking()
    const warnings = () => service.output.split('\n').filter(line => /"level":"(warn|error)"/.test(line))
    run.check(
      unready.length === 0,
      () => `not ready ${unready.length} times (${unready[0]}): ${warnings().join(' ')}`,
    )
    const isSame = pids.join() === workerPids(service.pid).join()
    run.check(isSame, 'a worker was replaced while there was too much to do')
    rows.tell(run)
    load.stop()
    await service.stop()
  }
  const { siteKey } = site
  const target = { secret: TEST_SECRET, siteKey, apiKeys: await moreApiKeys(service, siteKey), storeEpoch }
  const base = { port: service.port, site, storeEpoch, lifetimes: lifetimesOf(service.env), pids }
  return { run, rows, load, target, base, end }
}

async function moreApiKeys(service: TestService, siteKey: string): Promise<string[]> {
  const store = await service.openSites()
  try {
    const apiKeys: string[] = []
    while (apiKeys.length < API_KEYS) apiKeys.push((await createApiKey(store, siteKey)).apiKey)
    for (const apiKey of apiKeys) noteSecret('api key', apiKey)
    return apiKeys
  } finally {
    await store.close()
  }
}

/** CPU time of a visitor in the measured time, in microseconds. @param count of the visitors */
export const microsecondsOf = ({ busy, seconds }: VisitorsResult, count: number) =>
  (busy * seconds * 1e6) / count

export function checkAnswers(run: Run, name: string, { bad, badAnswers }: VisitorsResult): void {
  run.check(bad === 0, () => `${name}: ${bad} other answers, such as ${badAnswers[0]}`)
}

/** A row for each measurement, a column for each of its figures. */
export class Rows {
  readonly #rows = new Map<string, Map<string, number[]>>()

  /** Adds the results of one repetition. Names of columns end with their units. */
  add(row: string, values: Readonly<Record<string, number>>): void {
    const columns = this.#rows.get(row) ?? new Map<string, number[]>()
    this.#rows.set(row, columns)
    for (const [column, value] of Object.entries(values)) {
      const list = columns.get(column) ?? []
      columns.set(column, list)
      list.push(value)
    }
  }

  median(row: string, column: string): number {
    return spreadOf(this.#values(row, column)).median
  }

  max(row: string, column: string): number {
    return spreadOf(this.#values(row, column)).max
  }

  /** Reports each row as a figure, once: its columns as median (min-max), or as the value if there is only one. */
  tell(run: Run): void {
    for (const [row, columns] of this.#rows) {
      const texts = [...columns].map(([column, values]) => `${column} ${spreadText(values)}`)
      run.figure(row, texts.join(' | '))
    }
    this.#rows.clear()
  }

  #values(row: string, column: string): readonly number[] {
    return this.#rows.get(row)?.get(column) ?? []
  }
}

export function spreadText(values: readonly number[]): string {
  const { median, min, max } = spreadOf(values)
  return min === max ? text(median) : `${text(median)} (${text(min)}-${text(max)})`
}

function text(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toPrecision(3)
}
