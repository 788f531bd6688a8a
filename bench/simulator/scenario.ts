/** The form of scenarios.json and busy-sites.json, of populations.json and of prices.json. */

import { readFileSync } from 'node:fs'
import type { PuzzleName } from '../../src/protocol/proof.ts'
import { ToolError } from '../../test/harness/command-line.ts'
import { DEVICE_CLASSES, type DeviceClass } from '../../test/harness/devices.ts'
import type { AddressPlan } from './world.ts'

/** Per minute: one number; or [minute, rate] pairs with straight lines between them; or all in the last seconds of every so many minutes. */
export type Rate =
  | number
  | readonly (readonly [minute: number, perMinute: number])[]
  | { readonly perMinute: number; readonly lastSeconds: number; readonly everyMinutes?: number }

export interface Scenario {
  readonly name: string
  readonly about: string
  readonly minutes: number
  readonly base?: number | undefined
  /** The site's solving time, which takes the base's place. */
  readonly solveMs?: number
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
  readonly from: number
  readonly to: number
  readonly addresses: AddressPlan
  /** Name of people whose addresses it has. */
  readonly shares?: string
  /** right: solves and redeems; none: asks only; wrong: sends wrong counters. */
  readonly work: 'right' | 'none' | 'wrong'
  /** Threads of native code, and GPUs, that all its addresses share. */
  readonly threads?: number
  readonly gpus?: number
  /** Drops challenges of more bits. */
  readonly dropAbove?: number
  /** Solutions are kept until this minute, or until their challenges have a second left, and sent all at once. */
  readonly holdUntil?: number | 'expiry'
  /** Solves in the browsers of this device class, one for each address, instead of threads. */
  readonly device?: string
  /** Key of prices.json: what an address costs. */
  readonly address: string
}

interface Populations {
  readonly patienceSeconds: number
  readonly roundTripMs: number
  /** With sha256: from the challenge until a GPU helps, and million hashes a second of a GPU, by class of device. */
  readonly gpuStartMs: number
  readonly gpuMhs: Readonly<Record<string, number>>
  readonly devices: readonly DeviceClass[]
}

type ByPuzzle = Readonly<Record<PuzzleName, number>>

interface Prices {
  readonly threadMhs: ByPuzzle
  readonly threadDollarsPerHour: number
  readonly gpuMhs: ByPuzzle
  readonly gpuDollarsPerHour: number
  readonly bytesPerToken: number
  readonly addresses: Readonly<
    Record<string, { readonly dollarsPerGb: number; readonly dollarsPerHour: number }>
  >
  readonly ourMicroseconds: Readonly<Record<'challenge' | 'verify', ByPuzzle>>
}

const here = (name: string) => new URL(name, import.meta.url)

export function read<Data>(url: URL | string, parse: (text: string) => Data = JSON.parse): Data {
  try {
    return parse(readFileSync(url, 'utf8'))
  } catch (error) {
    throw new ToolError(`${url}: ${(error as Error).message}`)
  }
}

export const POPULATIONS: Populations = {
  ...read<Omit<Populations, 'devices'>>(here('populations.json')),
  devices: DEVICE_CLASSES,
}
export const PRICES = read<Prices>(here('prices.json'))

export const SCENARIOS = read<readonly Scenario[]>(here('scenarios.json'))
/** They take some minutes. */
export const BUSY_SITES = read<readonly Scenario[]>(here('busy-sites.json'))

export function scenarioOf(path: string): Scenario {
  const scenario = read<Scenario>(path)
  if (!(scenario.minutes > 0) || !Array.isArray(scenario.people))
    throw new ToolError(`${path}: expected an object with name, about, minutes and people`)
  return scenario
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

export function mostOf(rate: Rate): number {
  if (typeof rate === 'number') return rate
  if ('lastSeconds' in rate) return (rate.perMinute * 60 * (rate.everyMinutes ?? 1)) / rate.lastSeconds
  return Math.max(...rate.map(([, perMinute]) => perMinute))
}
