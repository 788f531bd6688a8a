/** Runs a scenario from its first minute to its last, and computes its figures. */

import type { PuzzleName } from '../../src/protocol/proof.ts'
import { Attacker } from './attackers.ts'
import { type Figures, figuresOf, Measure } from './figures.ts'
import { Visitor, type World } from './people.ts'
import { mostOf, type Rate, rateAt, type Scenario } from './scenario.ts'
import { SimulatedService } from './service.ts'
import { Addresses, Draw, Timeline } from './world.ts'

const MINUTE_MS = 60_000
/** The first starts of address plans (see Addresses): a scenario has fewer than a hundred groups of people, so all starts differ. */
const [PEOPLE_START, ATTACKS_START] = [1, 101]

interface Options {
  readonly seed: number
  /** How fast people's devices are, as a multiple of their classes' speed. */
  readonly speed: number
  /** What the site asks for; sha256 if not given. */
  readonly puzzle?: PuzzleName
}

export interface Result {
  readonly scenario: Scenario
  readonly figures: Figures
  readonly measure: Measure
}

export function simulate(scenario: Scenario, { seed, speed, puzzle = 'sha256' }: Options): Result {
  const timeline = new Timeline()
  const draw = new Draw(seed)
  const { people, attacks = [], minutes } = scenario
  const service = new SimulatedService(timeline, { ...scenario, puzzle })
  const measure = new Measure(puzzle)
  const world: World = { timeline, service, draw, measure, speed }
  const addressesOf = new Map<string, Addresses>()
  people.forEach((group, index) => {
    const addresses = new Addresses(group.addresses, PEOPLE_START + index)
    addressesOf.set(group.name, addresses)
    arrivals(world, group.rate, 0, minutes, () => {
      new Visitor(world, group, addresses.get(draw.below(addresses.count))).begin()
    })
  })
  attacks.forEach((attack, index) => {
    const { shares } = attack
    const addresses =
      shares === undefined ? new Addresses(attack.addresses, ATTACKS_START + index) : addressesOf.get(shares)
    if (addresses === undefined) throw new Error(`${scenario.name}: ${attack.name} shares with no ${shares}`)
    const attacker = new Attacker(world, attack, addresses)
    arrivals(world, attack.rate, attack.from, attack.to, () => attacker.ask())
  })
  timeline.runUntil(minutes * MINUTE_MS)
  return { scenario, figures: figuresOf(scenario, measure), measure }
}

/** A Poisson process whose rate may change: drawn at its highest rate, and thinned out (Lewis and Shedler, 1979). */
function arrivals({ timeline, draw }: World, rate: Rate, from: number, to: number, arrive: () => void): void {
  const most = mostOf(rate)
  if (most <= 0) return
  const next = () => {
    timeline.after(draw.exponential(MINUTE_MS / most), () => {
      const minute = timeline.nowMs / MINUTE_MS
      if (minute >= to) return
      if (draw.share() * most < rateAt(rate, minute)) arrive()
      next()
    })
  }
  timeline.at(from * MINUTE_MS, next)
}
