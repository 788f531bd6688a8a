/** Reads scenarios.json, busy-sites.json and prices.json, and tells the rates of scenarios. */

import { readFileSync } from 'node:fs'
import type { PuzzleName } from '../../src/protocol/proof.ts'
import { ToolError } from '../../test/harness/command-line.ts'
import type { AddressPlan } from './world.ts'

/** Per minute: one number; [minute, rate] pairs with straight lines between; or bursts in the last seconds of each period, over which `perMinute` is the mean. */
export type Rate =
  | number
  | readonly (readonly [minute: number, perMinute: number])[]
  | { readonly perMinute: number; readonly lastSeconds: number; readonly everyMinutes?: number }

export interface Scenario {
  readonly name: string
  readonly about: string
  readonly minutes: number
  /** Bits; the default of the puzzle if not given. */
  readonly base?: number | undefined
  /** Figures are taken of this part; of the whole if not given. */
  readonly measured?: readonly [fromMinute: number, toMinute: number]
  readonly people: readonly People[]
  readonly attacks?: readonly Attack[]
}

/** Visitors who want a token each, by the rules of the widget. */
export interface People {
  readonly name: string
  readonly rate: Rate
  readonly addresses: AddressPlan
  /** A class of test/harness/devices.ts; without it, all classes by their shares. */
  readonly device?: string
  /** Mean time that the page stays open, and so renews its tokens; without it, people leave with the first. */
  readonly staysMinutes?: number
}

export interface Attack {
  readonly name: string
  /** Challenges asked for. */
  readonly rate: Rate
  readonly from: number // minute
  readonly to: number
  readonly addresses: AddressPlan
  /** Name of the people whose addresses it has; `addresses` then only tell how many are paid for. */
  readonly shares?: string
  /** right: solves and gets tokens; none: asks only; wrong: sends wrong counters. */
  readonly work: 'right' | 'none' | 'wrong'
  /** Threads of native code, and GPUs, that all its addresses share. */
  readonly threads?: number
  readonly gpus?: number
  /** Drops challenges of more bits. */
  readonly dropAbove?: number
  /** All solutions are kept until this minute of the scenario and sent at once; or each until its challenge has a second left. */
  readonly holdUntil?: number | 'expiry'
  /** Solves in the browsers of this device class, one for each address, instead of threads. */
  readonly device?: string
  /** What an address costs: a key of `addresses` in prices.json. */
  readonly address: string
}

type ByPuzzle = Readonly<Record<PuzzleName, number>>

/** prices.json tells where each comes from. */
interface Prices {
  /** Million hashes a second of one thread of native code. */
  readonly threadMhs: ByPuzzle
  readonly threadDollarsPerHour: number
  readonly gpuMhs: ByPuzzle
  readonly gpuDollarsPerHour: number
  /** What an attacker sends and receives for a token. */
  readonly bytesPerToken: number
  readonly addresses: Readonly<
    Record<string, { readonly dollarsPerGb: number; readonly dollarsPerHour: number }>
  >
  /** CPU time of the service and Redis for a request; a verification counts with its redemption. */
  readonly ourMicroseconds: Readonly<Record<'challenge' | 'verify', ByPuzzle>>
}

const read = <Data>(name: string): Data => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))

export const PRICES = read<Prices>('prices.json')

export const SCENARIOS = read<readonly Scenario[]>('scenarios.json')
/** A run of these takes some minutes. */
export const BUSY_SITES = read<readonly Scenario[]>('busy-sites.json')

/** @throws ToolError if the file has no scenario */
export function scenarioOf(path: string): Scenario {
  try {
    const scenario = JSON.parse(readFileSync(path, 'utf8'))
    if (scenario.minutes > 0 && Array.isArray(scenario.people)) return scenario
    throw new Error('expected an object with at least name, minutes and people')
  } catch (error) {
    throw new ToolError(`--scenario: ${path}: ${(error as Error).message}`)
  }
}

/** @returns per minute */
export function rateAt(rate: Rate, minute: number): number {
  if (typeof rate === 'number') return rate
  if ('lastSeconds' in rate) {
    const { lastSeconds, everyMinutes = 1 } = rate
    return (everyMinutes - (minute % everyMinutes)) * 60 <= lastSeconds ? mostOf(rate) : 0
  }
  const next = rate.findIndex(([at]) => at > minute)
  if (next === 0) return rate[0]![1]
  if (next < 0) return rate.at(-1)![1]
  const [[from, before], [to, after]] = [rate[next - 1]!, rate[next]!]
  return before + ((after - before) * (minute - from)) / (to - from)
}

/** The highest rate, per minute; of bursts while they last, since `perMinute` is their mean over the whole period. */
export function mostOf(rate: Rate): number {
  if (typeof rate === 'number') return rate
  if ('lastSeconds' in rate) return (rate.perMinute * 60 * (rate.everyMinutes ?? 1)) / rate.lastSeconds
  return Math.max(...rate.map(([, perMinute]) => perMinute))
}
