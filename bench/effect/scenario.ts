/** The form of scenarios.json and busy-sites.json, of populations.json and of prices.json. */

import { readFileSync } from 'node:fs'
import { DEVICE_CLASSES, type DeviceClass } from '../../src/domain/solve-time.ts'
import { ToolError } from '../../test/harness/command-line.ts'
import type { AddressPlan } from './world.ts'

/** Per minute: one number; or [minute, rate] pairs with straight lines between them; or all in the last seconds of each minute. */
export type Rate =
  | number
  | readonly (readonly [minute: number, perMinute: number])[]
  | { readonly perMinute: number; readonly lastSeconds: number }

export interface Scenario {
  readonly name: string
  readonly about: string
  readonly minutes: number
  /** Of all hosts together. */
  readonly workers?: number
  readonly hosts?: number
  /** All visits of a network come to one worker, as over a balancer's kept connections; without it, to any worker. */
  readonly sticky?: boolean
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
  /** A class of src/domain/solve-time.ts; without it, all classes by their shares. */
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
  /** AVX-512 threads, and GPUs, that all its addresses share. */
  readonly threads?: number
  readonly gpus?: number
  /** How it lies where the site has a solving time: its device is as fast, or as slow, as may be believed. */
  readonly claims?: 'fast' | 'slow'
  /** Drops challenges of more bits. */
  readonly dropAbove?: number
  /** Minute: solutions are kept until then, and sent all at once. */
  readonly holdUntil?: number
  /** Solves in the browsers of this device class, one for each address, instead of threads. */
  readonly device?: string
  /** Key of prices.json: what an address costs. */
  readonly address: string
}

export interface Populations {
  readonly source: string
  readonly patienceSeconds: number
  readonly roundTripMs: number
  readonly devices: readonly DeviceClass[]
}

export interface Prices {
  readonly source: string
  readonly threadMhs: number
  readonly threadDollarsPerHour: number
  readonly gpuMhs: number
  readonly gpuDollarsPerHour: number
  readonly bytesPerToken: number
  readonly addresses: Readonly<
    Record<string, { readonly dollarsPerGb: number; readonly dollarsPerHour: number }>
  >
  readonly ourMicroseconds: { readonly challenge: number; readonly verify: number }
}

const here = (name: string) => new URL(name, import.meta.url)

function read<Data>(url: URL | string): Data {
  try {
    return JSON.parse(readFileSync(url, 'utf8')) as Data
  } catch (error) {
    throw new ToolError(`${url}: ${(error as Error).message}`)
  }
}

export const POPULATIONS: Populations = {
  ...read<Omit<Populations, 'devices'>>(here('populations.json')),
  devices: DEVICE_CLASSES,
}
export const PRICES = read<Prices>(here('prices.json'))

export function builtInScenarios(): Scenario[] {
  return read<Scenario[]>(here('scenarios.json'))
}

/** They take some minutes. */
export function busySites(): Scenario[] {
  return read<Scenario[]>(here('busy-sites.json'))
}

export function scenarioOf(path: string): Scenario {
  const scenario = read<Scenario>(path)
  if (!(scenario.minutes > 0) || !Array.isArray(scenario.people))
    throw new ToolError(`${path}: expected an object with name, about, minutes and people`)
  return scenario
}

/** @returns per minute */
export function rateAt(rate: Rate, minute: number): number {
  if (typeof rate === 'number') return rate
  if ('lastSeconds' in rate) return (minute % 1) * 60 >= 60 - rate.lastSeconds ? mostOf(rate) : 0
  const next = rate.findIndex(([at]) => at > minute)
  if (next === 0) return rate[0]![1]
  if (next < 0) return rate.at(-1)![1]
  const [[from, before], [to, after]] = [rate[next - 1]!, rate[next]!]
  return before + ((after - before) * (minute - from)) / (to - from)
}

export function mostOf(rate: Rate): number {
  if (typeof rate === 'number') return rate
  if ('lastSeconds' in rate) return (rate.perMinute * 60) / rate.lastSeconds
  return Math.max(...rate.map(([, perMinute]) => perMinute))
}
