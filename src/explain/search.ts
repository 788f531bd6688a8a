/** Finds one visitor's lines in logs: first those with the text that is searched for, then those with a nonce of the first. */

import { createReadStream, createWriteStream, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline, type Readable } from 'node:stream'
import { pipeline as pipelineDone } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'

export interface Query {
  readonly text: string
  /** `nonce`: one that was taken out of a token. `id`: a request id, or a bare nonce, which looks like the request ids of some proxies. */
  readonly kind: 'nonce' | 'id' | 'address'
  /** The address's network, which is what the log shows of an address by default. */
  readonly network?: string
}

export type LogRecord = Readonly<Record<string, unknown>>

export interface SearchResult {
  readonly records: readonly LogRecord[]
  /** True if some lines were found by the network alone, so other addresses may have caused them. */
  readonly isOfNetwork: boolean
  /** The number of lines that have the text but are no JSON of powgate. */
  readonly skipped: number
  /** True if only the last of the matching lines are here. */
  readonly isCut: boolean
  /** The time and the hosts of all lines that were read. */
  readonly read: { fromMs?: number; toMs?: number; readonly hosts: Set<string> }
}

export const STDIN = '-'
const STDIN_FD = 0
/** A visit is a nonce, or a line without one. */
export const VISITS_SHOWN = 10
const RECORDS_MAX = 1000
/** Longer lines are cut at their beginning: logrotate's `copytruncate` may put as many NULs before a line as the log had bytes. */
const LINE_CHARACTERS_MAX = 65_536

/** @param paths of files, also `.gz`, or `-` for standard input. @throws OperatorError if one cannot be read */
export async function searchLogs(paths: readonly string[], query: Query): Promise<SearchResult> {
  const { text, kind, network } = query
  const found = new LastVisits()
  // A search by nonce needs no second pass, because each line of the visit has that text. So it may read a pipe.
  const isPipe = paths.includes(STDIN) && !fstatSync(STDIN_FD).isFile()
  const stdinFd = isPipe && kind !== 'nonce' ? await copyOfPipe() : STDIN_FD
  const read: SearchResult['read'] = { hosts: new Set() }
  let [skipped, isOfNetwork] = [0, false]
  await eachLine(paths, stdinFd, line => {
    noteRead(read, line)
    if (!line.includes(text) && (network === undefined || !line.includes(network))) return
    const record = parseLine(line)
    const addresses = [record?.ip, record?.visitorIp, record?.expectedIp, record?.peer]
    if (record === undefined) skipped++
    else if (network !== undefined && addresses.includes(network)) {
      isOfNetwork = true
      found.add(line, record)
    } else if ([record.nonce, record.requestId, ...addresses].includes(text)) found.add(line, record)
  })
  found.dropEarlier()
  const nonces = new Set<unknown>(
    found.records.flatMap(({ nonce }) => (typeof nonce === 'string' ? nonce : [])),
  )
  if (kind !== 'nonce' && nonces.size > 0)
    await eachLine(paths, stdinFd, line => {
      const record = line.includes('nonce') ? parseLine(line) : undefined
      if (record !== undefined && nonces.has(record.nonce)) found.add(line, record)
    })
  found.dropEarlier()
  const records = found.records.sort((a, b) => Number(a.time) - Number(b.time))
  return { records, skipped, isOfNetwork, isCut: found.isCut, read }
}

/** Collects records, and keeps those of the last VISITS_SHOWN visits, and of them the last RECORDS_MAX. */
class LastVisits {
  isCut = false
  /** The key is the line, because some lines are found by both passes. */
  readonly #records = new Map<string, LogRecord>()

  get records(): LogRecord[] {
    return [...this.#records.values()]
  }

  add(line: string, record: LogRecord): void {
    this.#records.set(line, record)
    if (this.#records.size >= 2 * RECORDS_MAX) this.dropEarlier()
  }

  dropEarlier(): void {
    const lastMs = new Map<unknown, number>()
    for (const [line, { nonce = line, time }] of this.#records)
      lastMs.set(nonce, Math.max(Number(time) || 0, lastMs.get(nonce) ?? 0))
    const kept = new Map([...lastMs].sort(([, a], [, b]) => b - a).slice(0, VISITS_SHOWN))
    for (const [line, { nonce = line }] of this.#records) if (!kept.has(nonce)) this.#records.delete(line)
    this.isCut ||= kept.size < lastMs.size
    const rest = [...this.#records].sort(([, a], [, b]) => Number(b.time) - Number(a.time)).slice(RECORDS_MAX)
    for (const [line] of rest) this.#records.delete(line)
    this.isCut ||= rest.length > 0
  }
}

/** Copies standard input to a file, because a pipe can be read only once. The file has no name, so a signal leaves nothing behind. */
async function copyOfPipe(): Promise<number> {
  try {
    const dir = mkdtempSync(join(tmpdir(), 'powgate-explain-'))
    const fd = openSync(join(dir, 'log'), 'wx+', 0o600)
    rmSync(dir, { recursive: true })
    await pipelineDone(process.stdin, createWriteStream('', { fd, autoClose: false }))
    return fd
  } catch (error) {
    throw new OperatorError(
      `cannot buffer standard input: ${systemErrorText(error)}. Give a file instead: --log FILE`,
    )
  }
}

async function eachLine(
  paths: readonly string[],
  stdinFd: number,
  take: (line: string) => void,
): Promise<void> {
  for (const path of paths) {
    try {
      // The errors of both streams end the loop below, so the callback needs none.
      const bytes = open(path, stdinFd)
      const input = path.endsWith('.gz') ? pipeline(bytes, createGunzip(), () => {}) : bytes
      let rest = ''
      for await (const text of input.setEncoding('utf8')) {
        const lines = (rest + text).split('\n')
        rest = lines.pop()!.slice(-LINE_CHARACTERS_MAX)
        for (const line of lines) take(line)
      }
      if (rest !== '') take(rest)
    } catch (error) {
      throw new OperatorError(`--log: cannot read ${path}: ${systemErrorText(error)}`)
    }
  }
}

function open(path: string, stdinFd: number): Readable {
  if (path !== STDIN) return createReadStream(path)
  if (!fstatSync(stdinFd).isFile()) return process.stdin
  return createReadStream('', { fd: stdinFd, start: 0, autoClose: false })
}

/** Quotes have backslashes where a container runtime has wrapped the line into JSON of its own. */
const TIME = /\\?"time\\?":(\d{1,16})\b/
const HOSTNAME = /\\?"hostname\\?":\\?"([^"\\]+)/

function noteRead(read: SearchResult['read'], line: string): void {
  const time = TIME.exec(line)?.[1]
  if (time === undefined) return
  read.fromMs = Math.min(Number(time), read.fromMs ?? Number(time))
  read.toMs = Math.max(Number(time), read.toMs ?? Number(time))
  const hostname = HOSTNAME.exec(line)?.[1]
  if (hostname !== undefined) read.hosts.add(hostname)
}

/** Parses a line, also within a container runtime's prefix or wrapper. Returns undefined if the line is not powgate's. */
function parseLine(line: string): LogRecord | undefined {
  try {
    const value: unknown = JSON.parse(line.slice(line.indexOf('{')))
    if (typeof value !== 'object' || value === null) return undefined
    const record = value as LogRecord
    // A line of POWGATE_LOG_FORMAT=text ends in JSON without a time.
    if (record.time !== undefined && ('event' in record || record.name === 'powgate')) return record
    const inner = record.log ?? record.MESSAGE ?? record.message
    return typeof inner === 'string' && inner.includes('{') ? parseLine(inner) : undefined
  } catch {
    return undefined
  }
}
