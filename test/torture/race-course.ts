/** Where cases 3 and 4 race: a service with four workers, a site whose redemptions have no limits, and connections to it. */

import type { StoreKind, TestService, TestSite } from '../support/service.ts'
import { EASY, UNLIMITED_REDEMPTIONS } from './redemptions.ts'
import type { Run } from './run.ts'
import { Pool } from './wire.ts'

const WORKERS = 4
const TIMEOUT_MS = 20_000

interface RaceCourse {
  readonly service: TestService
  readonly site: TestSite
  readonly pool: Pool
}

/** Put away when the case has ended. */
export async function openRaceCourse(run: Run, kind: StoreKind, connections: number): Promise<RaceCourse> {
  const service = await run.service(kind, {
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_WORKERS: String(WORKERS),
    // What a busy machine takes is another matter.
    POWGATE_STORE_DEADLINE_MS: '5000',
    // Those whose answers were lost are asked for again after the race.
    POWGATE_TOKEN_SECONDS: '3600',
  })
  const site = await service.createSite({ difficulty: EASY })
  const pool = new Pool({ port: service.port, connections, timeoutMs: TIMEOUT_MS })
  run.defer(() => pool.close())
  return { service, site, pool }
}
