/**
 * Records what the difficulty rules saw and decided, for `bench:effect` to replay with another policy
 * (docs/evidence/policy.md#the-trace). A file has a line of JSON, then a line per event:
 *
 *   s site_... 0 16 28 30    site 0: its key, lowest and highest bits, challenges that an address may have a minute
 *   c 0 512 18 3 1 2 ...     challenge at site 0, 512 ms after the event before: base; challenges and failures of the address
 *                            in the last minute, its accepted proofs lately ...
 *     ... 24 12 9 8 0 ...    proofs a minute at the site: of repeat sources, now and usually; of others, the same; expected ...
 *     ... 60 55 ...          of all traffic, now and usually ...
 *     ... 24 9 3 0.5 ... 18  of each network around the address: prefix, proofs now and usually, days known; at last the bits
 *   a 230                    accepted proof, 230 ms after the event before
 *   f 230                    failed verification
 */

import { createWriteStream, existsSync, renameSync, type WriteStream } from 'node:fs'
import type { Logger } from 'pino'
import type { Ending, Issued } from '../domain/ending.ts'
import { systemErrorText } from '../domain/system-error.ts'
import type { ObservedExchange } from '../http/exchange-host.ts'

export const TRACE_FORMAT = 'powgate-trace 3'

export interface TraceHead {
  readonly format: string
  /** Unix milliseconds, from which the first event counts. */
  readonly startedAtMs: number
}

const BYTES_MAX = 64 * 2 ** 20

export class Recorder {
  readonly #sites = new Map<string, { readonly index: number; readonly line: string }>()
  readonly #output: WriteStream
  readonly #end: (why: string) => void
  #lastMs = Date.now()
  #bytesLeft: number

  /** @param path an existing file becomes `.old`: the last worker may still write it */
  constructor(path: string, log: Logger, bytesMax = BYTES_MAX) {
    this.#bytesLeft = bytesMax
    this.#end = why => {
      this.#bytesLeft = 0
      log.warn({ file: path }, `the trace ${why}: nothing more is recorded`)
    }
    if (existsSync(path)) renameSync(path, `${path}.old`)
    this.#output = createWriteStream(path, { flags: 'wx', mode: 0o600 })
    this.#output.on('error', error => this.#end(`cannot be written (${systemErrorText(error)})`))
    const head: TraceHead = { format: TRACE_FORMAT, startedAtMs: this.#lastMs }
    this.#add(JSON.stringify(head))
  }

  ended({ address }: ObservedExchange, ending: Ending): void {
    if (ending.kind === 'issued' && !ending.site.known.has(address!)) this.#issued(ending)
    if (ending.kind === 'judged') this.#add(`${ending.passed ? 'a' : 'f'} ${this.#since(Date.now())}`)
  }

  #issued({ site, issuedAtMs, difficulty, bounds, counts, traffic }: Issued): void {
    const { networks, all, siteRepeat, siteFirst, siteExpected } = traffic
    const index = this.#siteIndex(site.record.siteKey, `${bounds.min} ${bounds.max} ${counts.limit}`)
    const seen = [
      ...[index, this.#since(issuedAtMs), bounds.base],
      ...[counts.challenges, counts.failures, counts.accepted],
      ...[siteRepeat, siteFirst].flatMap(({ recent, usual }) => [recent, usual]),
      ...[siteExpected, all.recent, all.usual],
      ...networks.flatMap(({ prefixBits, recent, usual, days }) => [prefixBits, recent, usual, days]),
    ]
    this.#add(`c ${seen.join(' ')} ${difficulty}`)
  }

  close(): Promise<void> {
    return new Promise(resolve => this.#output.end(() => resolve()))
  }

  #siteIndex(siteKey: string, line: string): number {
    const before = this.#sites.get(siteKey)
    if (before?.line === line) return before.index
    const index = before?.index ?? this.#sites.size
    this.#sites.set(siteKey, { index, line })
    this.#add(`s ${siteKey} ${index} ${line}`)
    return index
  }

  /** Negative if the clock was set back. */
  #since(nowMs: number): number {
    const since = nowMs - this.#lastMs
    this.#lastMs = nowMs
    return since
  }

  #add(line: string): void {
    if (this.#bytesLeft <= 0) return
    this.#output.write(`${line}\n`)
    this.#bytesLeft -= line.length + 1
    if (this.#bytesLeft <= 0) this.#end('is full')
  }
}
