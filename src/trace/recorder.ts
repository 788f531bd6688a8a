/**
 * Records what the rules of the difficulty saw and decided, so that another policy can decide once more (replay.ts). Every
 * worker writes a file of its own. Its first line is JSON; then each event has a line, with spaces between the fields:
 *
 *   s site_... 0 16 28 30             site 0: its key, lowest and highest bits, challenges that an address may have a minute
 *   c ADDRESS 0 512 18 3 1 0.4 0.2 18 challenge at site 0, 512 ms after the event before: base; challenges and failures of
 *                                     the address in the last minute; load of the site, now and usually; bits
 *   a ADDRESS 230                     accepted proof
 *   f ADDRESS 230                     failed verification
 *
 * ADDRESS is a pseudonym. Its key is drawn at the start and is never written. While a trace is written, proofs are counted by
 * pseudonyms, so that a replay finds the same counts. No line has an address, a nonce or a token. Visits from known networks
 * are not recorded.
 */

import { randomBytes, randomInt } from 'node:crypto'
import { createWriteStream, existsSync, renameSync, type WriteStream } from 'node:fs'
import type { Logger } from 'pino'
import type { Address } from '../domain/address.ts'
import { nonceTerms } from '../domain/nonce.ts'
import { isOwnPseudonym, Pseudonyms, pseudonymText } from '../domain/pseudonyms.ts'
import { type Sources, SourceWatch } from '../domain/sources.ts'
import type { Events, IssuedChallenge, Judgement } from '../endpoints/service.ts'
import type { Exchange } from '../http/exchange.ts'

export const TRACE_FORMAT = 'powgate-trace 1'

/** The first line of a trace. */
export interface TraceHead {
  readonly format: string
  /** Unix milliseconds; the first event's time counts from it. */
  readonly startedAtMs: number
  /** Of the service. */
  readonly workers: number
  /** Of the counts of proofs: which pseudonyms share a slot. */
  readonly secret: number
}

/** Over a million visits. */
const BYTES_MAX = 64 * 2 ** 20

export class Recorder implements Events {
  readonly sources: Sources
  readonly #pseudonyms = new Pseudonyms(randomBytes(16))
  /** The number and the last line of each site. */
  readonly #sites = new Map<string, { readonly index: number; readonly line: string }>()
  readonly #output: WriteStream
  readonly #end: (why: string) => void
  #lastMs = Date.now()
  #bytesLeft: number

  /** @param path a file that is there is kept, with `.old` at its end: the worker before may still write it */
  constructor(path: string, workers: number, log: Logger, bytesMax = BYTES_MAX) {
    this.#bytesLeft = bytesMax
    this.#end = why => {
      this.#bytesLeft = 0
      log.warn({ file: path }, `the trace ${why}: nothing more is recorded`)
    }
    if (existsSync(path)) renameSync(path, `${path}.old`)
    this.#output = createWriteStream(path, { flags: 'wx', mode: 0o600 })
    this.#output.on('error', ({ message }) => this.#end(`cannot be written (${message})`))
    const secret = randomInt(2 ** 32)
    const head: TraceHead = { format: TRACE_FORMAT, startedAtMs: this.#lastMs, workers, secret }
    this.#add(JSON.stringify(head))
    const watch = new SourceWatch(workers, secret, isOwnPseudonym)
    this.sources = {
      of: (address, nowMs, policy) => watch.of(this.#pseudonyms.of(address), nowMs, policy),
      accepted: (address, nowMs, isKnown) => {
        if (!isKnown) this.#add(`a ${this.#textOf(address)} ${this.#since(nowMs)}`)
        return watch.accepted(this.#pseudonyms.of(address), nowMs, isKnown)
      },
    }
  }

  issued({ address }: Exchange, { site, nonce, difficulty, bounds, inputs }: IssuedChallenge): void {
    if (site.known.has(address!)) return
    const { addressChallenges, addressLimit, addressFailures, siteRate, siteRateUsual } = inputs
    const index = this.#siteIndex(site.record.siteKey, `${bounds.min} ${bounds.max} ${addressLimit}`)
    const since = this.#since(nonceTerms(nonce).issuedAtMs)
    const seen = `${bounds.base} ${addressChallenges} ${addressFailures} ${siteRate} ${siteRateUsual}`
    this.#add(`c ${this.#textOf(address!)} ${index} ${since} ${seen} ${difficulty}`)
  }

  judged({ address }: Exchange, { passed }: Judgement): void {
    if (!passed) this.#add(`f ${this.#textOf(address!)} ${this.#since(Date.now())}`)
  }

  redeemed(): void {}

  refused(): void {}

  /** Resolves when all is written. */
  close(): Promise<void> {
    return new Promise(resolve => this.#output.end(() => resolve()))
  }

  #siteIndex(siteKey: string, line: string): number {
    const known = this.#sites.get(siteKey)
    if (known?.line === line) return known.index
    const index = known?.index ?? this.#sites.size
    this.#sites.set(siteKey, { index, line })
    this.#add(`s ${siteKey} ${index} ${line}`)
    return index
  }

  /** Milliseconds since the event before; negative if the clock was set back. */
  #since(nowMs: number): number {
    const since = nowMs - this.#lastMs
    this.#lastMs = nowMs
    return since
  }

  #textOf(address: Address): string {
    return pseudonymText(this.#pseudonyms.of(address))
  }

  #add(line: string): void {
    if (this.#bytesLeft <= 0) return
    this.#output.write(`${line}\n`)
    this.#bytesLeft -= line.length + 1
    if (this.#bytesLeft <= 0) this.#end('is full')
  }
}
