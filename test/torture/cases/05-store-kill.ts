/** Redemptions of tokens race while their store is killed and restarted; after each restart the tokens are tried again. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../harness/eventually.ts'
import { childPids, isAlive, signalIfThere } from '../../harness/processes.ts'
import { RedisServer } from '../../harness/redis.ts'
import { type TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../../harness/service.ts'
import type { Call, History } from '../history.ts'
import type { Random } from '../random.ts'
import { attempt, EASY, type Race, raceFor, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Pool } from '../wire.ts'

const KILLS = 20
const RACERS = 64
const LANES = 2
const WORKERS = { full: 4, bounded: 2 } as const
const BACK_MS = 60_000
/** Numbers of attempts after the races start here. */
const LATER = 1000
/** How many tokens are tried again after each restart: of the last redeemed ones, and of the last with an unknown outcome. */
const AGAIN_MAX = { redeemed: 500, others: 100 } as const

const NO_FILES = ['--appendonly', 'no']

/** The persistence of Redis. */
const VARIANTS: Readonly<Record<string, readonly string[]>> = {
  'Redis without persistence': NO_FILES,
  'Redis, appendfsync everysec': ['--appendonly', 'yes', '--appendfsync', 'everysec'],
  'Redis, appendfsync always': ['--appendonly', 'yes', '--appendfsync', 'always'],
  'Redis, snapshots': ['--save', '1 1'],
}

export const storeKill: TortureCase = {
  number: 5,
  name: 'store-kill',
  aim: 'no token redeemed twice over all restarts; what the store may have lost is refused as invalid, what it kept as used',
  fullSize: `${KILLS} times kill -9 each: of Redis that keeps nothing, an append-only file (everysec, always), snapshots; of the whole service on the embedded store`,
  async run(run) {
    const names = Object.keys(VARIANTS)
    const shares = names.length + 1
    for (const [index, name] of names.entries()) await killRedis(run, name, (index + 1) / shares)
    await killService(run)
  },
}

/** Races for new tokens in a few lanes, until stopped. */
class Races {
  readonly tokens: string[] = []
  /** undefined: no races. */
  mint: TokenMint | undefined
  readonly race: Race
  readonly #redeemed = new Set<number>()
  #looked = 0
  #isOn = true
  readonly #lanes: Promise<void>[]

  constructor(race: Race) {
    this.race = race
    this.#lanes = Array.from({ length: LANES }, () => this.#lane())
  }

  async #lane(): Promise<void> {
    while (this.#isOn) {
      if (this.mint === undefined) await pause(5)
      else await raceFor(this.race, this.tokens.push(this.mint.mint()) - 1, this.tokens.at(-1)!)
    }
  }

  /** Resolves when the last race has ended. May be called more than once. */
  async stop(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#lanes)
    this.race.pool.close()
  }

  /** Tokens with a successful redemption. */
  get redeemed(): ReadonlySet<number> {
    const { calls } = this.race.history
    for (; this.#looked < calls.length; this.#looked++) {
      const { outcome, subject } = calls[this.#looked]!
      if (outcome === 'ok') this.#redeemed.add(subject)
    }
    return this.#redeemed
  }

  /** Which of these tokens are to be tried again. */
  some(from: number, to: number): { redeemed: number[]; others: number[] } {
    const all = Array.from({ length: to - from }, (_, offset) => from + offset)
    const known = this.redeemed
    return {
      redeemed: all.filter(subject => known.has(subject)).slice(-AGAIN_MAX.redeemed),
      others: all.filter(subject => !known.has(subject)).slice(-AGAIN_MAX.others),
    }
  }

  /** Tries each of these tokens again, until the outcome is known. */
  async again(tokens: { redeemed: number[]; others: number[] }, number: number): Promise<Call[]> {
    const subjects = [...tokens.redeemed, ...tokens.others]
    const known: Call[] = []
    for (let start = 0; start < subjects.length; start += RACERS) {
      const some = subjects.slice(start, start + RACERS)
      known.push(...(await Promise.all(some.map(subject => this.#untilKnown(subject, number)))))
    }
    return known
  }

  #untilKnown(subject: number, number: number): Promise<Call> {
    const ask = async () => {
      const call = await attempt(this.race, subject, this.tokens[subject]!, number)
      return call.outcome === 'ok' || call.outcome === 'refused' ? call : undefined
    }
    return eventually(BACK_MS, `token ${subject} is looked at`, ask)
  }
}

function racesOn(run: Run, service: TestService, site: TestSite, history: History): Races {
  const pool = new Pool({ port: service.port, connections: RACERS * LANES, timeoutMs: 10_000 })
  const races = new Races({ pool, site, history, racers: RACERS, hasKeys: false })
  run.defer(() => races.stop())
  run.defer(() => pool.close()) // runs before the service stops
  return races
}

async function killRedis(run: Run, name: string, share: number): Promise<void> {
  const redis = await RedisServer.start(VARIANTS[name])
  run.defer(() => redis.stop())
  const service = await run.service('embedded', {
    ...UNLIMITED_REDEMPTIONS,
    REDIS_URL: redis.url,
    POWGATE_WORKERS: String(run.count(WORKERS.full, WORKERS.bounded)),
    POWGATE_STORE_DEADLINE_MS: '1000',
  })
  const site = await service.createSite({ difficulty: EASY })
  const history = run.history(`store-kill-${redis.port}`)
  const races = racesOn(run, service, site, history)
  const mints = run.random.fork()
  let from = 0
  let [forgotten, others] = [0, 0]
  let kills = 0
  for (; kills < run.count(KILLS, 2) && (kills === 0 || !run.isOver(share)); kills++) {
    races.mint = await currentMint(mints, service, races)
    await pause(run.random.between(100, run.isFull ? 1500 : 700))
    const isRedeemed = () => races.some(from, races.tokens.length).redeemed.length > 0
    await eventually(BACK_MS, 'a token is redeemed before a kill', isRedeemed)
    // Tokens after this one have no redemption record that could be lost.
    const to = races.tokens.length
    await redis.kill()
    await pause(run.random.below(run.isFull ? 800 : 200))
    await redis.boot()
    // Races for tokens of before the kill are still running.
    const tried = races.some(from, to)
    const refused = await races.again(tried, LATER + kills)
    races.mint = undefined
    run.check(tried.redeemed.length > 0, `${name}: no token had been redeemed before a kill`)
    const wrong = refused.filter(({ code }) => code !== 'invalid-token')
    run.check(
      wrong.length === 0,
      () =>
        `${name}: after a restart ${wrong.length} tokens of before were not refused as invalid: ${JSON.stringify(wrong[0])}`,
    )
    forgotten += tried.redeemed.length
    others += tried.others.length
    from = races.tokens.length
    run.progress(`${name}: ${kills + 1} kills, ${to} tokens`)
  }
  await races.stop()
  await service.stop()
  await redis.stop()
  conclude(
    run,
    name,
    races,
    `${kills} kills of Redis, ${forgotten} redeemed tokens and ${others} others tried again afterwards: all refused as invalid`,
  )
}

/** A mint for the store's current epoch, once a race for one of its tokens has a success, over connections to all workers. */
function currentMint(mints: Random, service: TestService, races: Races): Promise<TokenMint> {
  return eventually(
    BACK_MS,
    () => `a token is redeemed\n${service.output.slice(-2000)}`,
    async () => {
      const mint = await TokenMint.open(service.url, races.race.site, mints.fork()).catch(() => undefined)
      if (mint === undefined) return undefined
      const subject = races.tokens.push(mint.mint()) - 1
      const calls = await raceFor(races.race, subject, races.tokens[subject]!)
      return calls.some(({ outcome }) => outcome === 'ok') ? mint : undefined
    },
  )
}

async function killService(run: Run): Promise<void> {
  const name = 'embedded store'
  const service = await run.service('embedded', {
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_WORKERS: String(run.count(WORKERS.full, WORKERS.bounded)),
  })
  const site = await service.createSite({ difficulty: EASY })
  const history = run.history('store-kill-embedded')
  const races = racesOn(run, service, site, history)
  races.mint = await currentMint(run.random.fork(), service, races)
  let [kills, tried] = [0, 0]
  for (; kills < run.count(KILLS, 2) && (kills === 0 || !run.isOver()); kills++) {
    await pause(run.random.between(100, run.isFull ? 1500 : 700))
    const before = races.tokens.length
    await killAll(service)
    await service.boot()
    tried += await checkKept(run, races, before, kills)
    run.progress(`${name}: ${kills + 1} kills, ${before} tokens`)
  }
  races.mint = undefined
  await loseState(run, service, races)
  await races.stop()
  await service.stop()
  conclude(
    run,
    name,
    races,
    `${kills} kills of the whole service: ${tried} redeemed tokens tried again, all still used`,
  )
}

/** Kills the primary process and the workers, before any of them can notice. */
async function killAll(service: TestService): Promise<void> {
  const workers = childPids(service.pid)
  for (const pid of [service.pid, ...workers]) signalIfThere(pid, 'SIGKILL')
  await service.end('SIGKILL')
  await eventually(BACK_MS, 'the workers have gone', () => workers.every(pid => !isAlive(pid)))
}

/** Redeemed tokens must be refused as used; unknown ones may be redeemed once. Returns how many redeemed ones were tried. */
async function checkKept(run: Run, races: Races, before: number, kills: number): Promise<number> {
  const tried = races.some(0, before)
  const redeemed = new Set(tried.redeemed)
  run.check(redeemed.size > 0, 'embedded store: no token had been redeemed before a kill')
  const again = await races.again(tried, LATER + kills)
  const lost = again.filter(({ subject, code }) => redeemed.has(subject) && code !== 'token-used')
  run.check(
    lost.length === 0,
    () => `embedded store: a redemption was lost: ${JSON.stringify(lost[0])} of ${lost.length}`,
  )
  const odd = again.filter(({ outcome, code }) => outcome !== 'ok' && code !== 'token-used')
  run.check(odd.length === 0, () => `embedded store: ${JSON.stringify(odd[0])} of ${odd.length}`)
  return redeemed.size
}

/** Simulates a power failure: after another boot, files may never have been written out, although they look whole. */
async function loseState(run: Run, service: TestService, races: Races): Promise<void> {
  await killAll(service)
  writeFileSync(join(service.dataDir, 'state', 'boot-id'), 'another boot')
  await service.boot()
  const tried = races.some(0, races.tokens.length)
  run.check(tried.redeemed.length > 0, 'embedded store: no token had been redeemed before the loss of power')
  const again = await races.again(tried, LATER + KILLS)
  const accepted = again.filter(({ code }) => code !== 'invalid-token')
  run.check(
    accepted.length === 0,
    () => `embedded store: after a loss of power: ${JSON.stringify(accepted[0])} of ${accepted.length}`,
  )
  run.figure('embedded store, tokens tried again after a simulated loss of power, all refused', again.length)
}

function conclude(run: Run, name: string, { race: { history }, tokens }: Races, what: string): void {
  const doubles = history.doubleSuccesses()
  run.size(`${name}: ${what}; ${tokens.length} tokens, ${history.calls.length} redemptions`)
  run.figure(`${name}, outcomes`, JSON.stringify(history.counts).replaceAll('"', ''))
  run.figure(`${name}, redeemed twice`, doubles.length)
  run.check(
    doubles.length === 0,
    `${name}: redeemed twice: ${doubles.slice(0, 5)} (${doubles.length} in all)`,
  )
  const odd = history.calls.filter(
    ({ outcome, code }) => outcome === 'refused' && !/^(token-used|invalid-token)$/.test(code),
  )
  run.check(
    odd.length === 0,
    () => `${name}: ${odd.length} were refused otherwise: ${JSON.stringify(odd[0])}`,
  )
}

const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
