/**
 * Writes log lines to standard output, and never lets the service wait for it. A full disk, a quota or a pipe that nobody
 * reads makes a write fail. Lines then wait here, as many as fit, and the rest is lost and counted. Writing is tried again until it works.
 */

import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

const [STDOUT, STDERR] = [1, 2]
const RETRY_MS = 1000
/** A pipe is full for as long as its reader is busy. */
const RETRY_PIPE_MS = 20
/** About half a megabyte. */
const WAITING_MAX = 1000

export class LogOutput implements DestinationStream {
  /** Lines lost since the process started. */
  linesLost = 0
  /** Called when writing works again and lines were lost meanwhile. */
  onWorksAgain: ((lost: number, cause: string) => void) | undefined
  readonly #fd: number
  /** In their order; the first may lack the bytes that were written before the error. */
  #waiting: Buffer[] = []
  #lostNow = 0
  #cause = ''

  constructor(fd = STDOUT) {
    this.#fd = withoutWaiting(fd)
    process.on('exit', () => this.#writeWaiting())
  }

  write(line: string): void {
    if (this.#waiting.length >= WAITING_MAX) this.#lose(1)
    else if (this.#waiting.push(Buffer.from(line)) === 1) this.#writeWaiting()
  }

  /** Writes what waits, until an error. */
  #writeWaiting(): void {
    let written = 0
    try {
      for (; written < this.#waiting.length; written++) {
        let rest = this.#waiting[written]!
        while (rest.length > 0) {
          rest = rest.subarray(writeSync(this.#fd, rest))
          this.#waiting[written] = rest
        }
      }
    } catch (error) {
      this.#failed(error as NodeJS.ErrnoException)
    }
    this.#waiting.splice(0, written)
    if (this.#waiting.length === 0) this.#works()
  }

  #failed({ code = 'an error' }: NodeJS.ErrnoException): void {
    const isPipeFull = code === 'EAGAIN'
    if (this.#cause === '' && !isPipeFull)
      tellStderr(`the log cannot be written (${code}): its lines wait, then are lost\n`)
    this.#cause = code
    setTimeout(() => this.#writeWaiting(), isPipeFull ? RETRY_PIPE_MS : RETRY_MS).unref()
  }

  #works(): void {
    const [lost, cause] = [this.#lostNow, this.#cause]
    this.#lostNow = 0
    this.#cause = ''
    if (lost > 0) this.onWorksAgain?.(lost, cause)
  }

  #lose(lines: number): void {
    this.linesLost += lines
    this.#lostNow += lines
  }
}

/**
 * The same open file, but a write to a full pipe fails at once. Other processes keep their own way of writing to the pipe.
 * Where that is not allowed, or for sockets, a write waits for the reader.
 */
function withoutWaiting(fd: number): number {
  try {
    const isPipe = fstatSync(fd).isFIFO()
    return isPipe ? openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK) : fd
  } catch {
    return fd
  }
}

function tellStderr(line: string): void {
  const fd = withoutWaiting(STDERR)
  try {
    writeSync(fd, line)
  } catch {
    // It may go to the same full disk.
  }
  if (fd !== STDERR) closeSync(fd)
}
