/**
 * Writes log lines to standard output without ever blocking. While writes fail (full disk, paused reader), lines wait, and those
 * beyond WAITING_MAX are lost and counted.
 */

import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

const [STDOUT, STDERR] = [1, 2]
const RETRY_MS = 1000
/** A pipe or socket is full while its reader is busy. */
const RETRY_FULL_MS = 20
const FULL = 'EAGAIN'
/** About half a megabyte. */
const WAITING_MAX = 1000
/** An ending process waits this long for the reader. */
const LAST_MS = 300

export class LogOutput implements DestinationStream {
  linesLost = 0
  onWorksAgain: ((lost: number, cause: string) => void) | undefined
  readonly #target: Target
  /** The first may lack bytes already written. */
  #waiting: Buffer[] = []
  #lostNow = 0
  #cause = ''

  constructor(fd = STDOUT) {
    this.#target = withoutWaiting(fd)
    process.on('exit', () => this.#writeLast())
  }

  #writeLast(): void {
    const pause = new Int32Array(new SharedArrayBuffer(4))
    const giveUpAtMs = performance.now() + LAST_MS
    this.#writeWaiting()
    while (this.#cause === FULL && performance.now() < giveUpAtMs) {
      Atomics.wait(pause, 0, 0, RETRY_FULL_MS)
      this.#writeWaiting()
    }
    const lost = this.#waiting.length + this.#lostNow
    if (lost > 0) tellStderr(`${lost} lines of the log were lost at the end (${this.#cause})\n`)
  }

  write(line: string): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.linesLost++
      this.#lostNow++
    } else if (this.#waiting.push(Buffer.from(line)) === 1) this.#writeWaiting()
  }

  #writeWaiting(): void {
    let written = 0
    try {
      this.#target.unblock()
      for (; written < this.#waiting.length; written++) {
        let rest = this.#waiting[written]!
        while (rest.length > 0) {
          rest = rest.subarray(writeSync(this.#target.fd, rest))
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
    const isFull = code === FULL
    if (this.#cause === '' && !isFull)
      tellStderr(`the log cannot be written (${code}): its lines wait, then are lost\n`)
    this.#cause = code
    setTimeout(() => this.#writeWaiting(), isFull ? RETRY_FULL_MS : RETRY_MS).unref()
  }

  #works(): void {
    const [lost, cause] = [this.#lostNow, this.#cause]
    this.#lostNow = 0
    this.#cause = ''
    if (lost > 0) this.onWorksAgain?.(lost, cause)
  }
}

interface Target {
  readonly fd: number
  readonly unblock: () => void
}

interface WithHandle {
  readonly _handle?: { setBlocking?(isBlocking: boolean): void }
}

/**
 * Opens the same file so that writes fail instead of waiting for the reader. A pipe is opened anew, because its mode belongs to
 * all processes that share it. Sockets and terminals cannot be opened anew, and each fork makes them blocking: one system call
 * switches them back before each write.
 */
function withoutWaiting(fd: number): Target {
  try {
    if (fstatSync(fd).isFIFO()) {
      const own = openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
      return { fd: own, unblock: () => {} }
    }
  } catch {
    // Another user's pipe cannot be opened, and is switched too.
  }
  const stream: unknown = fd === STDERR ? process.stderr : process.stdout
  return { fd, unblock: () => (stream as WithHandle)._handle?.setBlocking?.(false) }
}

function tellStderr(line: string): void {
  const { fd, unblock } = withoutWaiting(STDERR)
  try {
    unblock()
    writeSync(fd, line)
  } catch {
    // stderr may be on the same full disk.
  }
  if (fd !== STDERR) closeSync(fd)
}
