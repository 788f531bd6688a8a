/** Starts the service that is measured: as it is built, with one worker, on either store. */

import { claimsAt, FREE } from '../../test/harness/load/visitors.ts'
import { storePid, workerPids } from '../../test/harness/processes.ts'
import {
  type StoreKind,
  TEST_SECRET,
  TestService,
  UNLIMITED_REDEMPTIONS,
} from '../../test/harness/service.ts'
import type { TrafficTarget } from './traffic.ts'

/** One worker, whose CPU time is then that of the requests. */
const ENVIRONMENT = {
  POWGATE_WORKERS: '1',
  POWGATE_FAIL_OPEN: 'none', // every answer needs the store: none comes from the worker's memory
  POWGATE_STORE_DEADLINE_MS: '2000', // so that a pause of a busy machine is no outage
  POWGATE_OVERLOAD_MS: '0', // never sheds load
  POWGATE_CHALLENGE_SECONDS: '600', // requests are built some time before they are sent
  POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', // each request names its visitor in X-Forwarded-For
  ...UNLIMITED_REDEMPTIONS,
}

/** Starts the service from dist/ with a fresh store, on a Redis of its own if that is the store. */
export async function startService(kind: StoreKind, env: Record<string, string> = {}) {
  const service = await TestService.start(kind, { ...ENVIRONMENT, ...env })
  try {
    const workers = workerPids(service.pid)
    if (workers.length !== 1) throw new Error(`expected 1 worker, found ${workers.length}`)
    const store = storePid(service.pid)
    return {
      port: service.port,
      /** All processes of the server itself, the first worker first. */
      ownPids: [...workers, service.pid, ...(store === undefined ? [] : [store])],
      redisPids: service.redis === undefined ? [] : [service.redis.pid],
      target: await prepare(service),
      stop: () => service.stop(),
    }
  } catch (error) {
    await service.stop()
    throw error
  }
}

/** Makes a site, and takes one visitor up to a token, which tells the store's epoch: requests with another one are refused. */
async function prepare(service: TestService): Promise<TrafficTarget> {
  const site = await service.createSite({ difficulty: FREE })
  const { storeEpoch } = await claimsAt(service.url, site)
  return { secret: TEST_SECRET, siteKey: site.siteKey, apiKey: site.apiKey, storeEpoch }
}
