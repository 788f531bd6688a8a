/** /healthz (all workers listen) and /readyz (the store answers the real scripts), on a loopback port of their own. */

import { createServer, type Server } from 'node:http'
import { ListenError } from '../server.ts'

export interface Checks {
  isHealthy(): boolean
  isReady(): boolean
}

const HOST = '127.0.0.1'

/** undefined without a port. */
export function startHealthServer(port: number | undefined, checks: Checks): Promise<Server | undefined> {
  if (port === undefined) return Promise.resolve(undefined)
  const server = createServer((request, response) => {
    const check = { '/healthz': () => checks.isHealthy(), '/readyz': () => checks.isReady() }[
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
      reject(new ListenError({ host: HOST, port }, `POWGATE_ADMIN_PORT: ${error.message}`)),
    )
    server.listen(port, HOST, () => resolve(server))
  })
}
