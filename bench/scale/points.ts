/** The measured series. The points of a series differ in one parameter only. */

import type { ServiceKind } from '../http/server.ts'
import type { Endpoint } from '../http/traffic.ts'
import { ADDRESSES_MIN, type Options, type Part } from './options.ts'

export interface Point {
  readonly server: ServiceKind
  readonly workers: number
  /** In the store before the load comes, besides the load's own. */
  readonly addresses: number
  /** That requests name in turn; 0: the one that every service of a bench has. */
  readonly sites: number
  /** What the points of a series differ in, as a number: workers, Redis servers, addresses or sites. */
  readonly size: number
}

export interface Series {
  readonly part: Part
  readonly endpoint: Endpoint
  /** In ascending order of size; the others are compared with the first. */
  readonly points: readonly Point[]
}

export function seriesOf(options: Options): Series[] {
  return options.parts.flatMap(part => PARTS[part](options).map(series => ({ part, ...series })))
}

type PartSeries = Omit<Series, 'part'>

const PARTS: Readonly<Record<Part, (options: Options) => PartSeries[]>> = {
  workers: workerSeries,
  cluster: clusterSeries,
  addresses: addressSeries,
  sites: siteSeries,
}

const PLAIN = { workers: 1, addresses: 0, sites: 0 }

function workerSeries({ endpoints, stores, workers }: Options): PartSeries[] {
  const counts = steps(1, workers, 2)
  return endpoints.flatMap(endpoint =>
    stores.map(server => ({
      endpoint,
      points: counts.map(count => ({ ...PLAIN, server, workers: count, size: count })),
    })),
  )
}

/** Only with Redis, whatever store is asked for. */
function clusterSeries({ endpoints }: Options): PartSeries[] {
  return endpoints.map(endpoint => ({
    endpoint,
    points: [
      { ...PLAIN, server: 'redis', size: 1 },
      { ...PLAIN, server: 'cluster', size: 3 },
    ],
  }))
}

/** Redemptions know no visitors' addresses. */
function addressSeries({ endpoints, stores, addressesMax }: Options): PartSeries[] {
  const counts = steps(ADDRESSES_MIN, addressesMax, 10)
  return endpoints
    .filter(endpoint => endpoint !== 'verify-token')
    .flatMap(endpoint =>
      stores.map(server => ({
        endpoint,
        points: counts.map(addresses => ({ ...PLAIN, server, addresses, size: addresses })),
      })),
    )
}

function siteSeries({ endpoints, stores, sitesMax }: Options): PartSeries[] {
  const counts = steps(1, sitesMax, 10)
  return endpoints.flatMap(endpoint =>
    stores.map(server => ({
      endpoint,
      points: counts.map(sites => ({ ...PLAIN, server, sites, size: sites })),
    })),
  )
}

/** first, first * factor, ... and `max`. */
export function steps(first: number, max: number, factor: number): number[] {
  const counts: number[] = []
  for (let count = first; count < max; count *= factor) counts.push(count)
  return [...counts, max]
}
