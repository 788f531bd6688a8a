/** The admin port: /healthz (all workers listen) and /readyz (the store answers the real scripts). */

import { createServer, type Server } from 'node:http'
import type { Config } from '../config.ts'
import type { Totals } from '../observe/totals.ts'
import { ListenError } from '../server.ts'

/** What supervises the workers. */
export interface Supervisor {
  isHealthy(): boolean
  isReady(): boolean
  /** Resolves when what every worker has counted until now is in the totals. */
  askStats(): Promise<void>
}

/** undefined without a port. */
export function startAdminServer(
  { adminHost, adminPort }: Config,
  supervisor: Supervisor,
  _totals: Totals,
): Promise<Server | undefined> {
  if (adminPort === undefined) return Promise.resolve(undefined)
  const server = createServer((request, response) => {
    const check = { '/healthz': () => supervisor.isHealthy(), '/readyz': () => supervisor.isReady() }[
      request.url ?? ''
    ]
    if (check === undefined) {
      response.writeHead(404).end()
      return
    }
    const isOk = check()
    response.writeHead(isOk ? 200 : 503, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ ok: isOk }))
  })
  return new Promise((resolve, reject) => {
    server.once('error', error =>
      reject(new ListenError({ host: adminHost, port: adminPort }, `POWGATE_ADMIN_PORT: ${error.message}`)),
    )
    server.listen(adminPort, adminHost, () => resolve(server))
  })
}
