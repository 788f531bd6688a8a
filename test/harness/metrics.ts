/** The admin port of a service under test. */

import assert from 'node:assert/strict'
import { call } from './http.ts'
import { freePort } from './ports.ts'
import { PrometheusText } from './prometheus-text.ts'
import { type StoreKind, TestService } from './service.ts'

export interface Observed {
  readonly service: TestService
  readonly adminUrl: string
  /** The sum over all workers, read with the strict parser. */
  scrape(): Promise<PrometheusText>
}

export async function startObserved(kind: StoreKind, env: Record<string, string> = {}): Promise<Observed> {
  const adminPort = await freePort()
  // These tests do not check the store's usual deadline, which a busy machine may miss.
  const patience = { POWGATE_STORE_DEADLINE_MS: '5000' }
  const service = await TestService.start(kind, {
    ...patience,
    ...env,
    POWGATE_ADMIN_PORT: String(adminPort),
  })
  const adminUrl = `http://127.0.0.1:${adminPort}`
  return { service, adminUrl, scrape: () => scrape(adminUrl) }
}

async function scrape(adminUrl: string): Promise<PrometheusText> {
  const answer = await call(`${adminUrl}/metrics`)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  return new PrometheusText(answer.text)
}

/** The growth of each counter and bucket; unchanged ones are left out, a decrease is negative. */
export function growth(before: PrometheusText, after: PrometheusText): Map<string, number> {
  const grown = new Map<string, number>()
  for (const series of new Set([...before.counts.keys(), ...after.counts.keys()])) {
    const change = (after.counts.get(series) ?? 0) - (before.counts.get(series) ?? 0)
    if (change !== 0) grown.set(series, change)
  }
  return grown
}
