/** Redemptions of tokens race while their store is killed and restarted; after each restart the tokens are tried again. */

import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../harness/eventually.ts'
import { childPids, isAlive, signalIfThere } from '../../../harness/processes.ts'
import type { Random } from '../../../harness/random.ts'
import { RedisServer } from '../../../harness/redis.ts'
import { type TestService, UNLIMITED_REDEMPTIONS } from '../../../harness/service.ts'
import type { Call } from '../history.ts'
import {
  attempt,
  EASY,
  isKnown,
  judgeRedemptions,
  RACERS,
  type Race,
  raceFor,
  TokenMint,
} from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import { Lanes, Pool } from '../wire.ts'

const KILLS = 20
const LANES = 2
const WORKERS = { full: 4, bounded: 2 } as const
const BACK_MS = 60_000
/** Numbers of attempts after the races start here. */
const LATER = 1000
/** How many tokens are tried again after each restart: of the last redeemed ones, and of the last with an unknown outcome. */
const AGAIN_MAX = { redeemed: 500, others: 100 } as const

/** The persistence of Redis. */
const VARIANTS: Readonly<Record<string, readonly string[]>> = {
  'Redis without persistence': ['--appendonly', 'no'],
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
    const variants = Object.entries(VARIANTS)
    for (const [index, [name, args]] of variants.entries())
      await killRedis(run.part(name), args, (index + 1) / (variants.length + 1))
    await killService(run.part('embedded store'))
  },
}

/** Tokens to try again. */
interface Tried {
  readonly redeemed: readonly number[]
  readonly others: readonly number[]
}

/** Races for new tokens in a few lanes, until stopped. */
class Races {
  readonly tokens: string[] = []
  /** undefined: no races. */
  mint: TokenMint | undefined
  readonly race: Race
  readonly #service: TestService
  readonly #mints: Random
  readonly #redeemed = new Set<number>()
  #looked = 0
  readonly #lanes: Lanes

  private constructor(run: Run, service: TestService, race: Race) {
    this.race = race
    this.#service = service
    this.#mints = run.random.fork()
    this.#lanes = new Lanes(run, [race.pool])
    for (let lane = 0; lane < LANES; lane++)
      this.#lanes.start(async () => await (this.mint === undefined ? sleep(5) : this.#raceOnce(this.mint)))
  }

  static async open(run: Run, service: TestService, historyName: string): Promise<Races> {
    const site = await service.createSite({ difficulty: EASY })
    const pool = new Pool({ port: service.port, connections: RACERS * LANES, timeoutMs: 10_000 })
    return new Races(run, service, { pool, site, history: run.history(`store-kill-${historyName}`) })
  }

  stop(): Promise<void> {
    return this.#lanes.stop()
  }

  #raceOnce(mint: TokenMint): Promise<Call[]> {
    const subject = this.tokens.push(mint.mint()) - 1
    return raceFor(this.race, subject, this.tokens[subject]!)
  }

  /** Races under the store's current epoch, once a race has a success, over connections to all workers. */
  async start(): Promise<void> {
    const what = () => `a token is redeemed\n${this.#service.output.slice(-2000)}`
    this.mint = await eventually(BACK_MS, what, async () => {
      const random = this.#mints.fork()
      const mint = await TokenMint.open(this.#service.url, this.race.site, random).catch(() => undefined)
      if (mint === undefined) return undefined
      const calls = await this.#raceOnce(mint)
      return calls.some(({ outcome }) => outcome === 'ok') ? mint : undefined
    })
  }

  /** Which of these tokens are to be tried again. */
  some(from: number, to: number): Tried {
    const { calls } = this.race.history
    for (; this.#looked < calls.length; this.#looked++) {
      const { outcome, subject } = calls[this.#looked]!
      if (outcome === 'ok') this.#redeemed.add(subject)
    }
    const all = Array.from({ length: to - from }, (_, offset) => from + offset)
    return {
      redeemed: all.filter(subject => this.#redeemed.has(subject)).slice(-AGAIN_MAX.redeemed),
      others: all.filter(subject => !this.#redeemed.has(subject)).slice(-AGAIN_MAX.others),
    }
  }

  /** Tries each of these tokens again, until the outcome is known. */
  async again({ redeemed, others }: Tried, number: number): Promise<Call[]> {
    const subjects = [...redeemed, ...others]
    const known: Call[] = []
    for (let start = 0; start < subjects.length; start += RACERS) {
      const some = subjects.slice(start, start + RACERS)
      known.push(...(await Promise.all(some.map(subject => this.#untilKnown(subject, number)))))
    }
    return known
  }

  #untilKnown(subject: number, number: number): Promise<Call> {
    return eventually(BACK_MS, `token ${subject} is looked at`, async () => {
      const call = await attempt(this.race, subject, this.tokens[subject]!, number)
      return isKnown(call) ? call : undefined
    })
  }
}

const workersOf = (run: Run) => ({ POWGATE_WORKERS: String(run.count(WORKERS.full, WORKERS.bounded)) })

/** Lets tokens be redeemed for a while. */
const untilKill = (run: Run) => sleep(run.random.between(100, run.isFull ? 1500 : 700))

async function killRedis(run: Run, args: readonly string[], share: number): Promise<void> {
  const redis = await RedisServer.start(args)
  run.defer(() => redis.stop())
  const settings = { ...UNLIMITED_REDEMPTIONS, ...workersOf(run), POWGATE_STORE_DEADLINE_MS: '1000' }
  const service = await run.service('embedded', { ...settings, REDIS_URL: redis.url })
  const races = await Races.open(run, service, String(redis.port))
  let [from, forgotten, others, kills] = [0, 0, 0, 0]
  for (; kills < run.count(KILLS, 2) && (kills === 0 || !run.isOver(share)); kills++) {
    await races.start()
    await untilKill(run)
    const isRedeemed = () => races.some(from, races.tokens.length).redeemed.length > 0
    await eventually(BACK_MS, 'a token is redeemed before a kill', isRedeemed)
    // Tokens after this one have no redemption record that could be lost.
    const to = races.tokens.length
    await redis.kill()
    await sleep(run.random.below(run.isFull ? 800 : 200))
    await redis.boot()
    // Races for tokens of before the kill are still running.
    const tried = races.some(from, to)
    const refused = await races.again(tried, LATER + kills)
    races.mint = undefined
    run.check(tried.redeemed.length > 0, 'no token had been redeemed before a kill')
    const wrong = refused.filter(({ code }) => code !== 'token-forgotten')
    run.none('after a restart, tokens of before that were not refused as invalid', wrong)
    forgotten += tried.redeemed.length
    others += tried.others.length
    from = races.tokens.length
    run.progress(`${kills + 1} kills, ${to} tokens`)
  }
  await races.stop()
  await service.stop()
  await redis.stop()
  const again = `${forgotten} redeemed tokens and ${others} others tried again afterwards: all refused as invalid`
  conclude(run, races, `${kills} kills of Redis, ${again}`)
}

async function killService(run: Run): Promise<void> {
  const service = await run.service('embedded', { ...UNLIMITED_REDEMPTIONS, ...workersOf(run) })
  const races = await Races.open(run, service, 'embedded')
  await races.start()
  let [kills, tried] = [0, 0]
  for (; kills < run.count(KILLS, 2) && (kills === 0 || !run.isOver()); kills++) {
    await untilKill(run)
    const before = races.tokens.length
    await killAll(service)
    await service.boot()
    const again = await races.again(races.some(0, before), LATER + kills)
    tried += again.length
    const accepted = again.filter(({ code }) => code !== 'token-forgotten')
    run.none('tokens of before a kill that were not refused as forgotten', accepted)
    run.progress(`${kills + 1} kills, ${before} tokens`)
  }
  await races.stop()
  await service.stop()
  conclude(
    run,
    races,
    `${kills} kills of the whole service: ${tried} tokens tried again, all refused as forgotten`,
  )
}

/** Kills the primary process, the store process and the workers, before any of them can notice. */
async function killAll(service: TestService): Promise<void> {
  const others = childPids(service.pid)
  for (const pid of [service.pid, ...others]) signalIfThere(pid, 'SIGKILL')
  await service.end('SIGKILL')
  await eventually(BACK_MS, 'the others have gone', () => others.every(pid => !isAlive(pid)))
}

function conclude(run: Run, { race: { history }, tokens }: Races, what: string): void {
  run.size(`${what}; ${tokens.length} tokens, ${history.calls.length} redemptions`)
  judgeRedemptions(run, history, ['token-used', 'token-forgotten'])
}
