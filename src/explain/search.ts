/** Finds one visitor's lines in logs of any size: parses only lines with the text, and samples. */

import { createReadStream, createWriteStream, fstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pipeline, type Readable } from 'node:stream'
import { pipeline as pipelineDone } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { AdminError } from '../sites/sites.ts'
import { systemErrorText } from '../words/system-error.ts'

export interface Query {
  readonly text: string
  /** `id`: a request id or a bare nonce. `address`: its last visits. */
  readonly kind: 'nonce' | 'id' | 'address'
  /** All that the log shows of an address by default. */
  readonly network?: string
}

export type LogRecord = Readonly<Record<string, unknown>>

export interface SearchResult {
  readonly records: readonly LogRecord[]
  /** Lines may be of the network's other addresses. */
  readonly isOfNetwork: boolean
  /** Lines with the text that are not powgate's. */
  readonly skipped: number
  readonly isCut: boolean
  readonly read: Reading
}

/** The logs that were read, as far as samples tell. */
interface Reading {
  /** Unix milliseconds. */
  fromMs?: number
  toMs?: number
  readonly hosts: Set<string>
}

export const STDIN = '-'
const STDIN_FD = 0

const RECORDS_MAX = 1000
/** A proxy may give all requests one id. */
const NONCES_MAX = 20
export const VISITS = 10

/**
 * Lines with the text, and lines with a nonce found there.
 *
 * @param paths files, also `.gz`, or `-` for standard input
 * @throws AdminError if one cannot be read
 */
export async function searchLogs(paths: readonly string[], query: Query): Promise<SearchResult> {
  const hits = new Hits(query)
  // A second pass looks for the first one's nonces; a search by nonce needs none.
  const isPipe = paths.includes(STDIN) && !fstatSync(STDIN_FD).isFile()
  const kept = isPipe && query.kind !== 'nonce' ? await keepPipe() : undefined
  const sources = paths.map(path => (path === STDIN ? (kept ?? path) : path))
  try {
    for (const path of sources)
      await eachLineWith(
        path,
        [query.text, query.network ?? query.text],
        line => hits.take(line),
        line => hits.sample(line),
      )
    hits.keepLast()
    const nonces = hits.otherNonces()
    if (nonces.length > 0) {
      for (const path of sources) await eachLineWith(path, nonces, line => hits.takeOfNonces(line, nonces))
    }
    return hits.findings()
  } finally {
    if (kept !== undefined) rmSync(dirname(kept), { recursive: true, force: true })
  }
}

/** A pipe can be read only once. */
async function keepPipe(): Promise<string> {
  let dir: string | undefined
  try {
    dir = mkdtempSync(join(tmpdir(), 'powgate-explain-'))
    const path = join(dir, 'log')
    await pipelineDone(process.stdin, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
    return path
  } catch (error) {
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
    throw new AdminError(
      `cannot buffer standard input: ${systemErrorText(error)}. Give a file instead: --log FILE`,
    )
  }
}

class Hits {
  readonly #query: Query
  /** The second pass finds the same lines again, so records are kept by their text. */
  readonly #records = new Map<string, LogRecord>()
  readonly #skipped = new Set<string>()
  readonly #read: Reading = { hosts: new Set() }
  #isCut = false
  #isOfNetwork = false

  constructor(query: Query) {
    this.#query = query
  }

  take(line: string): void {
    const { text, kind, network } = this.#query
    const record = parseLine(line)
    const isOf = (address: string) => [record?.ip, record?.visitorIp, record?.expectedIp].includes(address)
    if (record === undefined) {
      // The service's own lines are of no visitor.
      if (parseLine(line, 'time') === undefined) this.#skipped.add(line.slice(0, 200))
    } else if (network !== undefined && isOf(network)) {
      this.#isOfNetwork = true
      this.#add(line, record)
    } else if (
      record.nonce === text ||
      (kind !== 'nonce' && record.requestId === text) ||
      (kind === 'address' && isOf(text))
    )
      this.#add(line, record)
  }

  sample(line: string): void {
    const { time, hostname } = parseLine(line, 'time') ?? {}
    if (typeof time !== 'number') return
    this.#read.fromMs = Math.min(time, this.#read.fromMs ?? time)
    this.#read.toMs = Math.max(time, this.#read.toMs ?? time)
    if (typeof hostname === 'string') this.#read.hosts.add(hostname)
  }

  /** Keeps an address's last visits. A visit is a nonce, or a line without one. */
  keepLast(): void {
    if (this.#query.kind !== 'address') return
    const lastMs = new Map<unknown, number>()
    for (const [line, { nonce = line, time }] of this.#records)
      lastMs.set(nonce, Math.max(Number(time) || 0, lastMs.get(nonce) ?? 0))
    const kept = new Map([...lastMs].sort(([, a], [, b]) => b - a).slice(0, VISITS))
    for (const [line, { nonce = line }] of this.#records) if (!kept.has(nonce)) this.#records.delete(line)
    this.#isCut ||= kept.size < lastMs.size
  }

  takeOfNonces(line: string, nonces: readonly string[]): void {
    const record = parseLine(line)
    if (record !== undefined && nonces.includes(String(record.nonce))) this.#add(line, record)
  }

  /** Removes lines of visits beyond NONCES_MAX. Otherwise they would be reported as visits without a challenge. */
  otherNonces(): string[] {
    const nonces = new Set<string>()
    for (const [line, { nonce }] of this.#records) {
      if (typeof nonce !== 'string' || nonce === this.#query.text) continue
      if (nonces.size < NONCES_MAX || nonces.has(nonce)) nonces.add(nonce)
      else {
        this.#isCut = true
        this.#records.delete(line)
      }
    }
    return [...nonces]
  }

  findings(): SearchResult {
    const records = [...this.#records.values()].sort((a, b) => Number(a.time) - Number(b.time))
    return {
      records,
      skipped: this.#skipped.size,
      isCut: this.#isCut,
      isOfNetwork: this.#isOfNetwork,
      read: this.#read,
    }
  }

  #add(line: string, record: LogRecord): void {
    if (this.#records.has(line)) return
    this.sample(line)
    if (this.#records.size >= RECORDS_MAX) this.keepLast()
    if (this.#records.size < RECORDS_MAX) this.#records.set(line, record)
    else this.#isCut = true
  }
}

/**
 * Skips a container runtime's prefix or wrapper.
 *
 * @param field `event`: only lines about requests
 */
function parseLine(line: string, field: 'event' | 'time' = 'event'): LogRecord | undefined {
  const start = line.indexOf('{')
  if (start < 0) return undefined
  try {
    const value: unknown = JSON.parse(line.slice(start))
    if (typeof value !== 'object' || value === null) return undefined
    const record = value as LogRecord
    // A line of POWGATE_LOG_FORMAT=text ends in JSON without a time.
    const hasField = typeof record[field] === (field === 'event' ? 'string' : 'number')
    if (hasField && record.time !== undefined) return record
    const inner = record.log ?? record.MESSAGE ?? record.message
    return typeof inner === 'string' && inner.includes('{') ? parseLine(inner, field) : undefined
  } catch {
    return undefined
  }
}

const BLOCK_BYTES = 1 << 20
/** Longer lines are skipped; powgate's are far shorter. */
const LINE_BYTES_MAX = 1 << 20
const NEWLINE = 0x0a
const SAMPLE_BYTES = 1 << 14

async function eachLineWith(
  path: string,
  needles: readonly string[],
  take: (line: string) => void,
  sample: (line: string) => void = () => {},
): Promise<void> {
  const texts = needles.map(needle => Buffer.from(needle))
  let rest: Buffer = Buffer.alloc(0)
  try {
    for await (const chunk of open(path)) {
      const block = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer])
      const end = block.lastIndexOf(NEWLINE) + 1
      scan(block.subarray(0, end), texts, take)
      for (let at = 0; at < end; at += SAMPLE_BYTES) sample(lineAt(block, at))
      sample(lineAt(block, Math.max(0, end - 2)))
      rest = block.length - end > LINE_BYTES_MAX ? Buffer.alloc(0) : block.subarray(end)
    }
  } catch (error) {
    throw new AdminError(`--log: cannot read ${path}: ${systemErrorText(error)}`)
  }
  scan(rest, texts, take)
  if (rest.length > 0) sample(lineAt(rest, 0))
}

function lineAt(block: Buffer, at: number): string {
  const end = block.indexOf(NEWLINE, at)
  return block.toString('utf8', block.lastIndexOf(NEWLINE, at) + 1, end < 0 ? block.length : end)
}

function open(path: string): Readable {
  if (path === STDIN) {
    const isFile = fstatSync(STDIN_FD).isFile()
    return isFile
      ? createReadStream('', { fd: STDIN_FD, start: 0, autoClose: false, highWaterMark: BLOCK_BYTES })
      : process.stdin
  }
  const file = createReadStream(path, { highWaterMark: BLOCK_BYTES })
  // The reading loop gets the errors of both.
  return path.endsWith('.gz') ? pipeline(file, createGunzip({ chunkSize: BLOCK_BYTES }), () => {}) : file
}

function scan(block: Buffer, texts: readonly Buffer[], take: (line: string) => void): void {
  const starts = new Set<number>()
  for (const text of texts) {
    for (let at = block.indexOf(text); at >= 0; ) {
      const start = block.lastIndexOf(NEWLINE, at) + 1
      const newline = block.indexOf(NEWLINE, at)
      const end = newline < 0 ? block.length : newline
      if (!starts.has(start)) take(block.toString('utf8', start, end))
      starts.add(start)
      at = newline < 0 ? -1 : block.indexOf(text, end)
    }
  }
}
