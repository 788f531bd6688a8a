/**
 * Fills the store of a running service with addresses and sites, in process. HTTP would take longer than the minute that
 * an address record lives.
 */

import { randomBytes } from 'node:crypto'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { limitKey, parseAddress } from '../../src/domain/address.ts'
import {
  type ApiKeyRecord,
  apiKeyId,
  apiKeySha256,
  compileSite,
  newApiKey,
  newSiteKey,
  type SiteRecord,
} from '../../src/domain/site.ts'
import { defaultSettings } from '../../src/sites/sites.ts'
import { createStore } from '../../src/store/open.ts'
import { openSiteStore } from '../../src/store/open-sites.ts'
import type { ChallengeRequest, SiteStore, Store } from '../../src/store/store.ts'
import type { RunningService } from '../http/server.ts'
import { type SiteKeys, visitorAddress } from '../http/traffic.ts'

/** Far from the numbers of the load's own visitors; both are scattered over the same addresses. */
const FIRST_ADDRESS = 2 ** 22
const DEADLINE_MS = 10_000
/** Operations that are asked for and not yet answered. */
const UNDER_WAY_MAX = 4096
/** Records live for 60 s after their last write, and some of that goes to the measuring. */
const FILL_MS_MAX = 40_000
const SAMPLE = 100

/** Makes so many addresses active: each fetches a challenge. Returns how long it took; rejects if that is too long. */
export async function fillAddresses(service: RunningService, count: number): Promise<number> {
  return await withStore(service, async (store, requestOf) => {
    const start = performance.now()
    await admitAll(store, count, index => requestOf(FIRST_ADDRESS + index))
    const elapsedMs = performance.now() - start
    if (elapsedMs > FILL_MS_MAX) {
      throw new Error(`${count} addresses took ${elapsedMs.toFixed(0)} ms: the first would soon be forgotten`)
    }
    return elapsedMs
  })
}

/** Rejects unless the store still knows the addresses that were filled in first. */
export async function checkAddresses(service: RunningService, count: number): Promise<void> {
  await withStore(service, async (store, requestOf) => {
    const sample = Math.min(SAMPLE, count)
    let forgotten = 0
    await admitAll(
      store,
      sample,
      index => requestOf(FIRST_ADDRESS + index),
      siteCount => {
        if (siteCount === 0) forgotten++
      },
    )
    if (forgotten > 0) throw new Error(`the store had forgotten addresses: ${forgotten} of ${sample}`)
  })
}

type RequestOf = (index: number) => ChallengeRequest

async function withStore<Result>(
  { env, target }: RunningService,
  act: (store: Store, requestOf: RequestOf) => Promise<Result>,
): Promise<Result> {
  const config = loadConfig(env)
  const store = await createStore(config, { sweeps: false, deadlineMs: DEADLINE_MS })
  try {
    await store.open()
    return await act(store, requestsOf(config, target.siteKey))
  } finally {
    await store.close()
  }
}

function requestsOf({ limits, ipv6PrefixBits }: Config, siteKey: string): RequestOf {
  const { logTag } = compileSite(siteRecord(siteKey))
  return index => ({
    addressKey: limitKey(parseAddress(visitorAddress(index))!, ipv6PrefixBits),
    siteTag: logTag,
    addressLimit: limits.challengeAddress,
    siteLimit: limits.challengeAddressSite,
  })
}

function admitAll(
  store: Store,
  count: number,
  requestOf: RequestOf,
  onAdmitted: (siteCount: number) => void = () => {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    let [asked, answered] = [0, 0]
    let isOver = false
    const ask = () => {
      while (!isOver && asked < count && asked - answered < UNDER_WAY_MAX) {
        store.admitChallenge(requestOf(asked++), admission => {
          if (admission.status === 'admitted') onAdmitted(admission.siteCount)
          else if (!isOver) {
            isOver = true
            reject(new Error(`the store answered "${admission.status}"`))
          }
          answered++
          if (answered === count) resolve()
          else if (asked - answered === UNDER_WAY_MAX / 2) ask()
        })
      }
    }
    ask()
  })
}

function siteRecord(siteKey: string): SiteRecord {
  const now = Date.now()
  return { ...defaultSettings('bench'), siteKey, createdAt: now, updatedAt: now }
}

/** Makes so many sites, each with an API key; many at once, since each write is on disk before it is answered. */
export async function fillSites({ env }: RunningService, count: number): Promise<SiteKeys[]> {
  const all = Array.from({ length: count }, newSite)
  const store = await openSiteStore(loadConfig(env))
  try {
    for (let start = 0; start < count; start += SITES_AT_ONCE) {
      await writeAll(store, all.slice(start, start + SITES_AT_ONCE))
    }
  } finally {
    await store.close()
  }
  return all.map(({ keys }) => keys)
}

interface NewSite {
  readonly keys: SiteKeys
  readonly site: SiteRecord
  readonly apiKey: ApiKeyRecord
}

const SITES_AT_ONCE = 500
const AUTHOR = { who: 'bench', how: 'bench:scale' }

function newSite(): NewSite {
  const keys = { siteKey: newSiteKey(randomBytes(96)), apiKey: newApiKey(randomBytes(128)) }
  const apiKey: ApiKeyRecord = {
    id: apiKeyId(keys.apiKey)!,
    siteKey: keys.siteKey,
    secretSha256: apiKeySha256(keys.apiKey),
    createdAt: Date.now(),
    revokedAt: null,
  }
  return { keys, site: siteRecord(keys.siteKey), apiKey }
}

async function writeAll(store: SiteStore, some: readonly NewSite[]): Promise<void> {
  const changes = some.flatMap(({ site, apiKey }) => [
    { site, expected: undefined },
    { apiKey, expected: undefined },
  ])
  if (!(await store.commit(changes, AUTHOR))) throw new Error('a site was there already')
}
