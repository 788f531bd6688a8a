/**
 * Writes log lines to standard output without blocking, except at the exit. While writes fail (full disk, paused reader), lines
 * wait, and those beyond WAITING_MAX are lost and counted.
 */

import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs'
import type { DestinationStream } from '../packages/pino.ts'

export const STDOUT = 1
const STDERR = 2
const RETRY_MS = 1000
/** The code with which writes to a pipe or socket fail while its reader is busy. */
const FULL = 'EAGAIN'
const RETRY_FULL_MS = 20
/** About half a megabyte of lines. */
const WAITING_MAX = 1000
/** An ending process waits this long for a reader that is busy. */
const EXIT_WAIT_MS = 300

export class LogOutput implements DestinationStream {
  linesLost = 0
  onWorksAgain: ((lost: number, cause: string) => void) | undefined
  readonly #target = nonBlocking(STDOUT)
  /** Lines to be written, without the part of the first that has been written already. While some are left, a timer tries again. */
  #waiting: Buffer[] = []
  /** Lines lost since writes began to fail. */
  #lostNow = 0
  /** The code of the error with which writes fail; empty while they succeed. */
  #cause = ''

  constructor() {
    process.on('exit', () => {
      this.#writeBlocking()
      const lost = this.#waiting.length + this.#lostNow
      if (lost > 0) writeStderr(`${lost} lines of the log were lost at the end (${this.#cause})\n`)
    })
  }

  #writeBlocking(): void {
    const pause = new Int32Array(new SharedArrayBuffer(4))
    const giveUpAtMs = performance.now() + EXIT_WAIT_MS
    this.#writeWaiting()
    while (this.#cause === FULL && performance.now() < giveUpAtMs) {
      Atomics.wait(pause, 0, 0, RETRY_FULL_MS) // sleeps, since timers no longer run at the exit
      this.#writeWaiting()
    }
  }

  write(line: string): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.linesLost++
      this.#lostNow++
    } else if (this.#waiting.push(Buffer.from(line)) === 1) this.#writeWaiting()
  }

  /** Counts lines that cannot be written now as lost: the process ends soon, and its counters are read before that. */
  giveUpWaiting(): void {
    this.#writeBlocking()
    this.linesLost += this.#waiting.length
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
    if (this.#waiting.length === 0) this.#succeeded()
  }

  #failed({ code = 'an error' }: NodeJS.ErrnoException): void {
    const isFull = code === FULL
    if (this.#cause === '' && !isFull)
      writeStderr(`the log cannot be written (${code}): its lines wait, then are lost\n`)
    this.#cause = code
    setTimeout(() => this.#writeWaiting(), isFull ? RETRY_FULL_MS : RETRY_MS).unref()
  }

  #succeeded(): void {
    const [lost, cause] = [this.#lostNow, this.#cause]
    this.#lostNow = 0
    this.#cause = ''
    if (lost > 0) this.onWorksAgain?.(lost, cause)
  }
}

/** Node.js has no public way to make a stream non-blocking. */
interface WithHandle {
  readonly _handle?: { setBlocking?(isBlocking: boolean): void }
}

/**
 * Opens the same file so that writes fail instead of waiting for the reader. A pipe is opened anew, because its mode belongs to
 * all processes that share it. Sockets and terminals cannot be opened anew, and each fork makes them blocking: one system call
 * switches them back before each write.
 */
function nonBlocking(fd: number) {
  try {
    if (fstatSync(fd).isFIFO()) {
      const own = openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
      return { fd: own, unblock: () => {} }
    }
  } catch {
    // Another user's pipe cannot be opened anew, so it is switched like a socket.
  }
  const stream: unknown = fd === STDERR ? process.stderr : process.stdout
  return { fd, unblock: () => (stream as WithHandle)._handle?.setBlocking?.(false) }
}

function writeStderr(line: string): void {
  const { fd, unblock } = nonBlocking(STDERR)
  try {
    unblock()
    writeSync(fd, line)
  } catch {
    // stderr may be on the same full disk.
  }
  if (fd !== STDERR) closeSync(fd)
}
