/** The metrics of connections: open ones, and ones refused beyond the maximum. */

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { startObserved } from '../harness/metrics.ts'

const BOUND = 10
const TOO_MANY = 5

const LISTENERS = {
  'the HTTP server': {},
  'the PROXY protocol relay': {
    POWGATE_PROXY_PROTOCOL: 'on',
    POWGATE_TRUSTED_PROXIES: '127.41.0.0/16', // whoever else comes is a client
  },
} as const

for (const [name, env] of Object.entries(LISTENERS)) {
  test(`${name}: connections are counted, and those above the bound`, async () => {
    const settings = { ...env, POWGATE_WORKERS: '1', POWGATE_CONNECTIONS_MAX: String(BOUND) }
    const { service, scrape } = await startObserved('embedded', settings)
    const counts = async () => {
      const metrics = await scrape()
      const ofWorker = ['', '_max'].map(name => metrics.value(`powgate_connections${name}`, { worker: '0' }))
      return [...ofWorker, metrics.value('powgate_connections_refused_total')].join()
    }
    // The test's own way of asking whether the service is up may still be open.
    await eventually(60_000, 'nobody is there', async () => (await counts()) === `0,${BOUND},0`)
    const sockets = Array.from({ length: BOUND + TOO_MANY }, () => connect(service.port, '127.0.0.1'))
    for (const socket of sockets) socket.on('error', () => {})
    const full = `${BOUND},${BOUND},${TOO_MANY}`
    await eventually(60_000, `they are ${full}`, async () => (await counts()) === full)
    for (const socket of sockets) socket.destroy()
    await eventually(60_000, 'they are gone', async () => (await counts()) === `0,${BOUND},${TOO_MANY}`)
    assert.equal(await service.end(), 0)
    await service.stop()
  })
}
