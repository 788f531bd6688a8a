/** Aims of the policy, which bound figures of simulated scenarios: `npm run bench:effect -- --aims`. effect.md says why some are missed. */

import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { difficultyOf, NO_TRAFFIC, priceOf, siteFree } from '../../src/domain/price.ts'
import { PRICING } from '../../src/domain/pricing.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { BASE_BITS } from '../../src/domain/site-fields.ts'
import type { PuzzleName } from '../../src/protocol/proof.ts'
import { type Cell, left, meanOf, right, sumOf, table } from '../report/report.ts'
import { BINS_PER_MINUTE, type Figures } from './figures.ts'
import { mostOf, PRICES, SCENARIOS, type Scenario } from './scenario.ts'
import type { Result } from './simulate.ts'

const END_RUSH_EVEN = 'end-rush, spread evenly'

/** The figure that an aim bounds. If it is undefined or NaN, the aim is missed. */
type ValueOf = (figures: Figures, result: Result) => number | undefined
type Aim = readonly [aim: string, most: number, scenarios: readonly string[], value: ValueOf]

/** One of an office is the attacker, by the office's address. */
const GRIEFER = ['nat-griefer']
const OFFICES: readonly string[] = ['office-nat-0900', ...GRIEFER]
/** Offices while others attack. */
const BURST = ['offices-in-burst']
/** An office has few people, so its figures are means of this many runs. */
const OFFICE_RUNS = 20
/** Proofs a minute that exceed every budget, so that a returning attacker pays the highest price. */
const FLOOD = 1e9
/**
 * Attackers who own much address space, and how many times the base a token is to cost them. These are no wishes, but a little less
 * than the prices of today reach: a change that makes such tokens cheaper shows as a miss.
 */
const TIMES_BASE = { 'v6-slash32': 15, 'v4-slash16': 15, 'datacentre-24s': 14 }

/**
 * @param run simulates a scenario, with another seed for each `index`
 * @param puzzle that `run` simulates
 * @param base of all sites, bits
 * @returns a row for each aim: the aim, the bound, what was found, met or MISSED
 */
export function aimRows(
  run: (scenario: Scenario, index: number) => Result,
  puzzle: PuzzleName = 'sha256',
  base: number = BASE_BITS[puzzle],
): string[][] {
  const results = new Map<string, Result[]>()
  for (const scenario of SCENARIOS.flatMap(withEven)) {
    const runs: Result[] = []
    const count = [...OFFICES, ...BURST].includes(scenario.name) ? OFFICE_RUNS : 1
    while (runs.length < count) runs.push(run({ ...scenario, base }, runs.length))
    results.set(scenario.name, runs)
  }
  const attacked = [...results].flatMap(([, [first]]) => (first!.scenario.attacks ? [first!.scenario] : []))
  const found = (name: string, value: ValueOf) =>
    meanOf(results.get(name)!.map(result => value(result.figures, result) ?? Number.NaN))
  const rows = (aims: readonly Aim[]) =>
    aims.map(([aim, most, names, value]) =>
      atMost(aim, most, new Map(names.map(name => [name, found(name, value)]))),
    )
  const quietP95 = found('lone', figures => figures.all.p95)
  return [
    ...rows(ofPeople(quietP95)),
    atLeast("attackers' CPU a proof over ours, quiet", 100, costRatio(puzzle, base, 0)),
    atLeast("attackers' CPU a proof over ours, at a site under attack", 1000, costRatio(puzzle, base, FLOOD)),
    ...rows(ofAttacks(attacked, results.get(END_RUSH_EVEN)![0]!)),
    ...Object.entries(TIMES_BASE).map(([name, least]) =>
      atLeast(`${name}: times the base that a token takes`, least, found(name, timesBase)),
    ),
  ]
}

export function aimTable(rows: readonly string[][]): string {
  const found = 'found: all that miss it, or the nearest to that'
  const heads = [left('aim'), right('wanted'), left(found), left('')]
  const cells = heads.map((head, index): Cell<string[]> => [head, row => row[index]!])
  return table('', cells, rows)
}

/** `collateral`: the rise of each figure among people, or an attacker's neighbours, while the attack lasts. */
function ofPeople(quietP95: number): Aim[] {
  const lone = ['lone']
  const crowds = ['flash-crowd', 'flash-crowd-dense']
  return [
    ['lone visitors: p95, s', 1, lone, figures => figures.all.p95],
    ['lone low phones: p95, s', 2, lone, figures => figures.byDevice['low phone']?.p95],
    ['lone visitors: refused, of 100,000', 0, lone, figures => 1e5 * figures.all.limited],
    ['a crowd: p95 over quiet', 2, crowds, figures => figures.all.p95! / quietP95],
    ['a crowd: refused, %', 0, crowds, figures => 100 * figures.all.limited],
    ['an office: p95, s', 3, OFFICES, figures => figures.byPeople.office?.p95],
    ['an office: gave up, %', 0.2, OFFICES, figures => 100 * figures.byPeople.office!.gone],
    ["an attacker's neighbours: p95, s", 2.5, GRIEFER, figures => figures.collateral?.p95],
    [
      "an attacker's neighbours: more of them left, %",
      0.2,
      GRIEFER,
      ({ collateral }) => 100 * collateral!.gone,
    ],
    ['neighbours of a griefer: score lost', 0.05, GRIEFER, ({ collateral }) => -collateral!.score], // a loss is a negative rise
  ]
}

function ofAttacks(attacked: readonly Scenario[], even: Result): Aim[] {
  const attacks = attacked.map(({ name }) => name)
  // Where an attack lasts from the beginning to the end, as slow-ramp does, there is no quiet time to come back to.
  const passing = attacked.filter(({ attacks, minutes }) =>
    attacks!.every(({ from, to }) => from > 0 && to < minutes),
  )
  const over = passing.map(({ name }) => name)
  const idle = ['challenge-only-inflation']
  const rush = ['end-rush']
  const slash48 = ['v6-slash48']
  const owners = [...slash48, 'datacentre-24s']
  const ofAnAddress = CONTRACT_LIMITS.verifyAddressSite
  return [
    ['requests without work: bits added to others', 0, idle, figures => figures.collateral?.bits],
    ["bursts over an even flow: people's work", 1.1, rush, (_, result) => workOf(result) / workOf(even)],
    ['bursts over an even flow: tokens', 1.1, rush, (_, result) => tokensOf(result) / tokensOf(even)],
    ['one owner: tokens over the tolerated load', 2, owners, (_, result) => tokensOverBudget(result)],
    ['a /48: tokens over those of an address', 16, slash48, (_, result) => tokensOf(result) / ofAnAddress],
    ['all attacks: p95 of people who come once, s', 1, attacks, figures => figures.byPeople.people?.p95],
    ['an attack: p95 of people in offices, s', 3, BURST, figures => figures.byPeople.office?.p95],
    ['after an attack: s until within half a bit', 120, over, figures => figures.recoverySeconds],
    ['after an attack: s until at the base', 300, over, figures => figures.fullRecoverySeconds],
  ]
}

function atMost(aim: string, most: number, found: ReadonlyMap<string, number>): string[] {
  const sorted = [...found].sort(([, a], [, b]) => b - a)
  const missed = sorted.filter(([, value]) => !(value <= most))
  const shown = missed.length > 0 ? missed : sorted.slice(0, 1)
  const text = shown.map(([name, value]) => `${name} ${value.toFixed(2)}`).join(', ')
  return [aim, `<= ${most}`, text, missed.length > 0 ? 'MISSED' : 'met']
}

function atLeast(aim: string, least: number, found: number): string[] {
  return [aim, `>= ${least}`, found.toFixed(found < 100 ? 1 : 0), found >= least ? 'met' : 'MISSED']
}

/** A returning attacker's processor time for a proof over ours. @param siteRate proofs a minute of all returning addresses */
function costRatio(puzzle: PuzzleName, base: number, siteRate: number): number {
  const traffic = { ...NO_TRAFFIC, siteRates: { recent: siteRate, usual: 0 } } // so all above the free rate is an attack
  const { challenge, verify } = PRICES.ourMicroseconds
  const { challengeAddressSite: limitPerMinute } = CONTRACT_LIMITS
  // The attacker's addresses return, and ask for too few challenges to pay for that.
  const counts = { challenges: 0, limitPerMinute, accepted: PRICING.returningProofs }
  const bits = difficultyOf({ ...SITE_DEFAULTS.difficulty, base }, priceOf(counts, traffic, PRICING))
  const attackerMicroseconds = 2 ** bits / PRICES.threadMhs[puzzle] // hashes over million hashes a second
  return attackerMicroseconds / (challenge[puzzle] + verify[puzzle])
}

/** After `end-rush` comes the same attack as an even flow, to compare with. */
function withEven(scenario: Scenario): Scenario[] {
  if (scenario.name !== 'end-rush') return [scenario]
  const even = scenario.attacks!.map(one => ({ ...one, rate: (one.rate as { perMinute: number }).perMinute }))
  return [scenario, { ...scenario, name: END_RUSH_EVEN, attacks: even }]
}

/** Mean work of people while the attack lasts. The scenarios of which this and tokensOf are asked have one attack. */
function workOf({ scenario: { attacks, base }, measure }: Result): number {
  const { from, to } = attacks![0]!
  const during = measure.visits.filter(({ atMs }) => atMs >= from * 60_000 && atMs < to * 60_000)
  return meanOf(during.map(({ bits }) => 2 ** (bits ?? base!)))
}

/** Hashes of the attackers for each token, over those of the base. */
function timesBase(_: Figures, { scenario: { base }, measure }: Result): number {
  const counts = [...measure.attacks.values()]
  const accepted = sumOf(counts.map(count => count.accepted))
  return sumOf(counts.map(({ hashes }) => hashes)) / accepted / 2 ** base!
}

/** Tokens that attackers got, a minute; without the first minute, in which prices still rise. */
function tokensOf({ scenario: { attacks }, measure }: Result): number {
  const { from, to } = attacks![0]!
  const bins = measure.bins.slice((from + 1) * BINS_PER_MINUTE, to * BINS_PER_MINUTE)
  return sumOf(bins.map(({ attackTokens }) => attackTokens)) / (to - from - 1)
}

/** Over the site's budget, if all its people count as returning: at so many proofs a minute its load is no attack yet. */
function tokensOverBudget(result: Result): number {
  return tokensOf(result) / siteFree(sumOf(result.scenario.people.map(({ rate }) => mostOf(rate))), PRICING)
}
