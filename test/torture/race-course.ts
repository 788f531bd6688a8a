/** The setup of cases 3 and 4: a service with four workers, a site whose redemptions are unlimited, and connections to it. */

import { type StoreKind, type TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { EASY } from './redemptions.ts'
import type { Run } from './run.ts'
import { Pool } from './wire.ts'

const WORKERS = 4
const TIMEOUT_MS = 20_000

interface RaceCourse {
  readonly service: TestService
  readonly site: TestSite
  readonly pool: Pool
}

/** Closed when the case has ended. */
export async function openRaceCourse(run: Run, kind: StoreKind, connections: number): Promise<RaceCourse> {
  const service = await run.service(kind, {
    ...UNLIMITED_REDEMPTIONS,
    POWGATE_WORKERS: String(WORKERS),
    // These cases do not check the usual deadline, which a busy machine may miss.
    POWGATE_STORE_DEADLINE_MS: '5000',
    // Tokens whose answers were lost are redeemed again after the race.
    POWGATE_TOKEN_SECONDS: '3600',
  })
  const site = await service.createSite({ difficulty: EASY })
  const pool = new Pool({ port: service.port, connections, timeoutMs: TIMEOUT_MS })
  run.defer(() => pool.close())
  return { service, site, pool }
}
