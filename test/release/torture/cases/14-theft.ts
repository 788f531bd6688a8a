/** What one visitor has solved, or was issued, cannot be used by others, twice, or later. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Keyring } from '../../../../src/domain/keyring.ts'
import { readToken, type TokenClaims } from '../../../../src/domain/token.ts'
import type { Solution } from '../../../../src/protocol/wire.ts'
import { Client, HONEST_ENVIRONMENT } from '../../../harness/client.ts'
import { type Answer, closeIdleConnections, freshAddress } from '../../../harness/http.ts'
import { FREE } from '../../../harness/load/traffic.ts'
import {
  STORE_KINDS,
  type StoreKind,
  TEST_SECRET,
  type TestService,
  type TestSite,
  UNLIMITED_REDEMPTIONS,
} from '../../../harness/service.ts'
import { solutionFor, untilReady } from '../../../proxy/observer.ts'
import { EASY, TokenMint } from '../redemptions.ts'
import type { Run, TortureCase } from '../run.ts'
import {
  OTHER_SECRET,
  SITEVERIFY_CODES,
  SOLUTION_THEFTS,
  type SolutionTheft,
  type TokenTheft,
  tokenThefts,
} from '../theft-rows.ts'

const TOKEN_THEFTS = tokenThefts(TEST_SECRET)
/** The shortest lifetime of a challenge. */
const LIFETIME_SECONDS = 10
const SHORT_LIVED = {
  POWGATE_CHALLENGE_SECONDS: String(LIFETIME_SECONDS),
  POWGATE_TOKEN_SECONDS: String(LIFETIME_SECONDS),
}
const STOCK = 30
const ATTACKS = SOLUTION_THEFTS.length + 2 * TOKEN_THEFTS.length

const keyring = new Keyring([TEST_SECRET])

export const theft: TortureCase = {
  number: 14,
  name: 'theft',
  aim: 'each attack is refused with its code; nothing that was stolen, stockpiled or kept too long redeems; owners lose nothing',
  fullSize: `${ATTACKS} attacks on each store, both redemption endpoints; ${STOCK} challenges and tokens stockpiled`,
  async run(run) {
    // The service closes connections that are idle for 10 s, so none is reused close to that time.
    run.every(3000, closeIdleConnections)
    await Promise.all(STORE_KINDS.map(kind => onStore(run.part(kind), kind)))
  },
}

async function onStore(run: Run, kind: StoreKind): Promise<void> {
  const env = { ...UNLIMITED_REDEMPTIONS, POWGATE_STORE_DEADLINE_MS: '5000', LOG_LEVEL: 'error' }
  const open = async (more: Record<string, string>) =>
    Scene.open(run, await run.service(kind, { ...env, ...more }))
  const [scene, kept] = await Promise.all([open({}), open(SHORT_LIVED)])
  await Promise.all([stealAll(scene), keptTooLong(kept)])
  await scene.sweep()
  await kept.sweep()
  run.size(`${ATTACKS} attacks, ${STOCK} challenges and ${STOCK} tokens kept`)
  run.figure('swept', `${scene.swept + kept.swept} attempts at what thieves hold`)
}

async function stealAll(scene: Scene): Promise<void> {
  await stockpiledChallenges(scene)
  for (const row of SOLUTION_THEFTS) await stealSolution(scene, row)
  for (const row of TOKEN_THEFTS) {
    await stealToken(scene, row, 'verify-token')
    await stealToken(scene, row, 'siteverify')
  }
}

/** Two sites, their owners' client, and everything that thieves hold. */
class Scene {
  readonly run: Run
  readonly client: Client
  readonly site: TestSite
  readonly other: TestSite
  readonly mint: TokenMint
  /** Texts that a thief has, or has made, and that must never be redeemed, whatever the key. */
  readonly loot: string[] = []
  /** Tokens that still belong to their owners, who must be able to redeem them once. */
  readonly owned: string[] = []
  swept = 0

  private constructor(run: Run, url: string, site: TestSite, other: TestSite, mint: TokenMint) {
    this.run = run
    this.client = new Client(url)
    this.site = site
    this.other = other
    this.mint = mint
  }

  static async open(run: Run, service: TestService): Promise<Scene> {
    const difficulty = run.isFull ? EASY : FREE
    const site = await service.createSite({ difficulty })
    const other = await service.createSite({ difficulty })
    await untilReady(service.url, site)
    const mint = await TokenMint.open(service.url, site, run.random)
    return new Scene(run, service.url, site, other, mint)
  }

  async solved(from: string, { siteKey } = this.site): Promise<Solution> {
    const answer = await this.client.challenge(siteKey, { from })
    if (answer.status !== 200) throw new Error(`/challenge answered ${answer.status}: ${answer.text}`)
    if (this.run.isFull) return solutionFor(answer.json.nonce)
    // A challenge without difficulty, as the service would issue it: hundreds of others would take too long.
    const { random } = this.run
    return {
      nonce: this.mint.nonce(siteKey, from),
      counter: random.between(1, 2 ** 30),
      fingerprintHash: random.hex(64),
      environment: HONEST_ENVIRONMENT,
    }
  }

  async token(from = freshAddress()): Promise<{ token: string; claims: TokenClaims }> {
    const { json, text } = await this.client.verify(this.site.siteKey, await this.solved(from), { from })
    const reading = json?.token ? readToken(keyring, json.token) : undefined
    if (reading?.status !== 'genuine') throw new Error(`/verify answered ${text}`)
    return { token: json.token, claims: reading.claims }
  }

  /** @returns the token of an answer that must have one */
  granted(answer: Answer, what: string): string | undefined {
    const token = answer.json?.token
    this.run.check(typeof token === 'string', `${what}: ${answer.status} ${answer.text}`)
    return typeof token === 'string' ? token : undefined
  }

  /** An owner redeems its token. */
  async redeems(token: string, what: string): Promise<void> {
    const answer = await this.client.verifyToken(this.site.apiKey, { token })
    const isRight = answer.json?.success === true
    this.run.check(isRight, () => `${what}: its owner cannot redeem it: ${answer.status} ${answer.text}`)
    this.loot.push(token)
  }

  refused(answer: Answer, status: number, code: string, what: string): void {
    const { success, token, 'error-codes': codes } = answer.json ?? {}
    const is = answer.status === status && (answer.json?.code === code || codes?.join() === code)
    this.run.check(is, () => `${what}: ${answer.status} ${answer.text}, not ${status} ${code}`)
    this.run.check(success !== true && !token, () => `${what}: GRANTED: ${answer.text}`)
    if (typeof token === 'string') this.loot.push(token)
  }

  /** Owners redeem their tokens, once. Then everything is tried at both endpoints, in a full run with every key. */
  async sweep(): Promise<void> {
    for (const token of this.owned) await this.redeems(token, 'left alone by thieves')
    const callers = this.run.isFull ? [this.site, this.other] : [this.site]
    const tries = callers.flatMap(({ apiKey }) => [
      (token: string) => this.client.verifyToken(apiKey, { token }),
      (token: string) => this.client.verifyToken(apiKey, { token, idempotencyKey: 'sweep' }),
      (token: string) => this.client.siteverify({ secret: apiKey, response: token }),
    ])
    for (const text of new Set(this.loot)) {
      const answers = await Promise.all(tries.map(attempt => attempt(text)))
      this.swept += answers.length
      const isRedeemed = answers.some(({ json }) => json?.success !== false)
      this.run.check(!isRedeemed, () => `at the end, this redeemed: ${JSON.stringify(text)}`)
    }
  }
}

/** A thief has a visitor's solved challenge, before or after the visitor has submitted it. */
async function stealSolution(scene: Scene, row: SolutionTheft): Promise<void> {
  const owner = freshAddress()
  const what = `/verify, a solution ${row.attack}`
  const solution = await scene.solved(owner)
  const bringBack = async () => {
    const answer = await scene.client.verify(scene.site.siteKey, solution, { from: owner })
    return scene.granted(answer, `${what}: its owner`)
  }
  const early = row.isSpent ? await bringBack() : undefined
  const from = row.from === 'another' ? freshAddress() : owner
  const { siteKey } = row.site === 'another' ? scene.other : scene.site
  const answer = await scene.client.verify(siteKey, row.body(solution), { from })
  scene.refused(answer, row.status, row.code, what)
  // The thief's attempts must not use up the nonce.
  const token = early ?? (await bringBack())
  if (token !== undefined) scene.owned.push(token)
}

/** A thief has a visitor's token, before or after the visitor's backend has redeemed it. */
async function stealToken(
  scene: Scene,
  row: TokenTheft,
  endpoint: 'verify-token' | 'siteverify',
): Promise<void> {
  const what = `/${endpoint}, a token ${row.attack}`
  const { token, claims } = await scene.token()
  if (row.isSpent) await scene.redeems(token, what)
  const stolen = row.make(token, claims)
  const apiKey = keyFor(scene, row.apiKey)
  const { expectedIp, idempotencyKey } = row
  if (endpoint === 'verify-token') {
    const answer = await scene.client.verifyToken(apiKey, { token: stolen, expectedIp, idempotencyKey })
    scene.refused(answer, row.status, row.code, what)
  } else {
    const optional = { remoteip: expectedIp, idempotency_key: idempotencyKey }
    const answer = await scene.client.siteverify({ secret: apiKey, response: stolen, ...optional })
    scene.refused(answer, 200, SITEVERIFY_CODES[row.code]!, what)
  }
  // What a thief has made of the token must not work later either; the token itself still belongs to its owner.
  if (stolen !== token) scene.loot.push(stolen)
  if (!row.isSpent) scene.owned.push(token)
}

function keyFor(scene: Scene, which: TokenTheft['apiKey']): string {
  switch (which) {
    case 'another site’s':
      return scene.other.apiKey
    case 'unknown':
      return `sk_00000000_${'A'.repeat(43)}`
    case 'the site key':
      return scene.site.siteKey
    default:
      return scene.site.apiKey
  }
}

/** The contract's limits for one address: at one site in a minute, and at all sites. */
const [CHALLENGES_MAX, VERIFICATIONS_MAX, VERIFICATIONS_GLOBAL_MAX] = [30, 20, 30]

/** As many challenges as one address can get, all solved, and all submitted at once. */
async function stockpiledChallenges(scene: Scene): Promise<void> {
  const from = freshAddress()
  const what = 'stockpiled challenges'
  const stock: Solution[] = []
  for (const site of [scene.site, scene.other])
    for (let count = 0; count < STOCK; count++) stock.push(await scene.solved(from, site))
  const oneMore = await scene.client.challenge(scene.site.siteKey, { from })
  scene.refused(oneMore, 429, 'rate-limited', `challenge ${CHALLENGES_MAX + 1} of a minute at a site`)
  const startedAtMs = performance.now()
  const answers = await Promise.all(
    stock.map((solution, index) =>
      scene.client.verify((index < STOCK ? scene.site : scene.other).siteKey, solution, { from }),
    ),
  )
  // A busy machine may have needed a part of the next minute.
  const tookMs = performance.now() - startedAtMs
  if (tookMs > 50_000) {
    const problem = `${what}: to bring them back took ${tookMs.toFixed(0)} ms, so that limits are not judged`
    scene.run.size(problem)
    scene.run.check(!scene.run.isFull, problem)
    return
  }
  const passed = (part: readonly Answer[]) => part.filter(({ json }) => json?.passed === true).length
  const [here, there] = [passed(answers.slice(0, STOCK)), passed(answers.slice(STOCK))]
  const others = answers.filter(({ status, json }) => json?.passed !== true && status !== 429)
  scene.run.none(`${what}: other answers`, others)
  scene.run.check(
    here <= VERIFICATIONS_MAX && there <= VERIFICATIONS_MAX && here + there === VERIFICATIONS_GLOBAL_MAX,
    `${what}: of ${stock.length} brought back at once ${here} and ${there} passed`,
  )
  // From other addresses the remaining solutions are useless.
  const left = stock.filter((_, index) => answers[index]!.status === 429)
  for (const solution of left) {
    const answer = await scene.client.verify(scene.site.siteKey, solution, { from: freshAddress() })
    const { status, json } = answer
    const isRefused = (status === 403 && json?.code === 'ip-mismatch') || json?.code === 'invalid-nonce'
    scene.run.check(isRefused, () => `${what}: from elsewhere: ${status} ${answer.text}`)
  }
  for (const { json } of answers.slice(0, STOCK)) if (json?.passed === true) scene.owned.push(json.token)
}

/** Challenges and tokens that are kept until just before their expiry, and until after it. */
async function keptTooLong(scene: Scene): Promise<void> {
  const owners = Array.from({ length: STOCK }, freshAddress)
  const startedAtMs = Date.now()
  const solutions = await Promise.all(owners.map(from => scene.solved(from)))
  const tokens: string[] = []
  for (const from of owners) tokens.push((await scene.token(from)).token)
  const issuedLastAtMs = Date.now()
  // A busy machine may be late. A redemption that was early enough counts; a redemption after the expiry is wrong.
  const untilMs = (atMs: number) => sleep(Math.max(0, atMs - Date.now()))
  await untilMs(startedAtMs + LIFETIME_SECONDS * 600)
  const early = tokens.splice(0, STOCK / 2)
  for (const token of early) {
    const answer = await scene.client.verifyToken(scene.site.apiKey, { token })
    const isLate = Date.now() >= Number(token.slice(0, 13)) + LIFETIME_SECONDS * 1000
    const isRight = answer.json?.success === true || isLate
    scene.run.check(isRight, () => `a token kept almost until its end: ${answer.status} ${answer.text}`)
    scene.loot.push(token)
  }
  await untilMs(issuedLastAtMs + LIFETIME_SECONDS * 1000 + 20)
  for (const [index, token] of tokens.entries()) {
    const what = 'a token kept beyond its end'
    if (index % 2 === 0)
      scene.refused(await scene.client.verifyToken(scene.site.apiKey, { token }), 400, 'token-expired', what)
    else {
      const answer = await scene.client.siteverify({ secret: scene.site.apiKey, response: token })
      scene.refused(answer, 200, 'timeout-or-duplicate', what)
    }
    scene.loot.push(token)
  }
  for (const [index, solution] of solutions.entries()) {
    const answer = await scene.client.verify(scene.site.siteKey, solution, { from: owners[index]! })
    scene.refused(answer, 400, 'expired-nonce', 'a solution kept beyond its end')
  }
  await refuseForeignChallenges(scene)
}

/** Challenges that this service never issued: of another time, or of another memory of the store. */
async function refuseForeignChallenges(scene: Scene): Promise<void> {
  const { claims } = await scene.token()
  const from = freshAddress()
  const nonceOf = (more: Parameters<TokenMint['nonce']>[2], keys = keyring) =>
    scene.mint.nonce(scene.site.siteKey, from, { difficulty: EASY.base, ...more }, keys)
  const foreign = {
    'of a store that lost its memory': nonceOf({ storeEpoch: (claims.storeEpoch ^ 1) >>> 0 }),
    'of another master secret': nonceOf({}, new Keyring([OTHER_SECRET])),
    'from the future': nonceOf({ issuedAtMs: Date.now() + 3_600_000 }),
  }
  for (const [name, nonce] of Object.entries(foreign)) {
    const answer = await scene.client.verify(scene.site.siteKey, solutionFor(nonce), { from })
    scene.refused(answer, 400, 'invalid-nonce', `a challenge ${name}`)
  }
}
