/** Structured logs on standard output. Nothing secret is ever passed to them: no API key, no token, no header. */

import { type Logger, pino } from 'pino'
import { formatAddress } from './domain/address.ts'
import type { Events } from './endpoints/service.ts'

export type { Logger }

export function createLogger(level: string, bindings: Record<string, unknown> = {}): Logger {
  return pino({ level, base: { pid: process.pid, ...bindings } })
}

/** Failed verifications logged per second and worker: enough to see an attack, not enough to be one. */
const FAILURES_LOGGED_PER_SECOND = 20

/** Logs what no client is told. Refusals are routine (debug); failed verifications carry their reasons (info). */
export function loggedEvents(log: Logger): Events {
  let second = 0
  let logged = 0
  return {
    issued() {},
    redeemed() {},
    refused(exchange, endpoint, reason) {
      if (log.isLevelEnabled('debug')) log.debug({ endpoint, reason, ip: ipOf(exchange.address) }, 'refused')
    },
    judged(exchange, { site, passed, reasons, score }) {
      if (passed) return
      const now = Math.floor(Date.now() / 1000)
      if (now !== second) {
        if (logged > FAILURES_LOGGED_PER_SECOND) {
          log.info(
            { failures: logged - FAILURES_LOGGED_PER_SECOND },
            'more verifications failed than are logged',
          )
        }
        second = now
        logged = 0
      }
      logged++
      if (logged > FAILURES_LOGGED_PER_SECOND) return
      const { siteKey } = site.record
      log.info({ siteKey, reasons, score, ip: ipOf(exchange.address) }, 'verification failed')
    },
  }
}

function ipOf(address: string | undefined): string {
  return address === undefined ? '' : formatAddress(address)
}
