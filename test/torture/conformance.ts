/** Sends a request unchanged, byte by byte, and determines what happens to it and to its connection. */

import { RawConnection } from '../harness/raw-http.ts'
import type { Fate, Row } from './conformance-rows.ts'

export interface Target {
  readonly port: number
  /** Loopback address to call from. */
  readonly from: string
  /** A second request, sent after the row's own on the same connection. */
  readonly marker: string
  /** Whether an answer belongs to the marker. */
  isMarker(body: string): boolean
}

/** What a strict parser gives: this answer, then the marker's. */
const ACCEPTED = 'accepted'

/** Most tries of a row: the service ends a connection with one in 64 of its answers without a body, and announces it. */
const TIMES_MAX = 5

/** @param patienceMs after this time without a byte, no answer is expected */
export async function fateOf(row: Row, target: Target, patienceMs: number): Promise<Fate> {
  for (let times = 1; ; times++) {
    const { fate, isLastBare } = await tried(row, target, patienceMs)
    if (!isLastBare || times === TIMES_MAX) return fate
  }
}

async function tried(
  row: Row,
  target: Target,
  patienceMs: number,
): Promise<{ fate: Fate; isLastBare: boolean }> {
  const connection = await Tape.open(target)
  try {
    await connection.send(row.bytes)
    await connection.until(tape => tape.isClosed || tape.answers(row.isHead).length > 0, patienceMs)
    // A second, wrong answer comes right after the first.
    await connection.until(tape => tape.isClosed, 30)
    const own = connection.answers(row.isHead)
    if (!connection.isClosed) {
      await connection.send(target.marker)
      const isDone = (tape: Tape) => tape.isClosed || tape.hasMarker(row.isHead, target)
      await connection.until(isDone, patienceMs)
      await connection.until(tape => tape.isClosed, 30)
    }
    const all = connection.answers(row.isHead)
    const markers = all.filter(({ body }) => target.isMarker(body)).length
    const rest = all.filter(({ body }) => !target.isMarker(body)).map(label)
    const isInOrder = markers === 1 && target.isMarker(all.at(-1)!.body)
    const words = [...rest]
    if (markers > 1 || (markers === 1 && !isInOrder)) words.push('the marker out of order')
    else if (connection.isClosed && markers === 0) words.push('closed')
    else if (markers === 0) words.push('waits')
    if (own.some(({ body }) => target.isMarker(body))) words.push('the marker before it was asked')
    // If more bytes follow its last request, a connection is closed before the answer has arrived.
    const isBareLost = all.length === 0 && row.bytes.includes('If-None-Match')
    const isLastBare = isBareLost || all.some(answer => answer.isLastBare)
    return { fate: words.length === 0 ? 'ignored' : words.join(', '), isLastBare }
  } finally {
    connection.close()
  }
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly isLastBare: boolean
}

function label({ status, body }: Answer): string {
  if (status === 304) return ACCEPTED
  if (status === 200 && body.includes('"invalid-input-secret"')) return ACCEPTED
  if (status === 200 && body.includes('"missing-input-secret"')) return 'accepted without its body'
  return status === 0 ? 'an answer that is not HTTP/1' : String(status)
}

/** Everything received on one connection. */
class Tape {
  readonly #connection: RawConnection
  #text = ''
  #isClosed = false

  private constructor(connection: RawConnection) {
    this.#connection = connection
    connection.socket.on('data', chunk => {
      this.#text += chunk.toString('latin1')
    })
    connection.socket.on('close', () => {
      this.#isClosed = true
    })
  }

  static async open({ port, from }: Target): Promise<Tape> {
    return new Tape(await RawConnection.open(port, from))
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  async send(bytes: string): Promise<void> {
    if (!this.#isClosed) await this.#connection.send(bytes)
  }

  async until(holds: (tape: Tape) => boolean, ms: number): Promise<void> {
    const giveUpAt = performance.now() + ms
    while (!holds(this) && performance.now() < giveUpAt) await new Promise(resolve => setTimeout(resolve, 2))
  }

  hasMarker(isHead: boolean, target: Target): boolean {
    return this.answers(isHead).some(({ body }) => target.isMarker(body))
  }

  /** @param isHead whether the first answer has no body, whatever its length says */
  answers(isHead: boolean): Answer[] {
    const answers: Answer[] = []
    let rest = this.#text
    while (rest !== '') {
      const end = rest.indexOf('\r\n\r\n')
      if (!rest.startsWith('HTTP/1.')) {
        answers.push({ status: 0, body: rest, isLastBare: false })
        break
      }
      if (end < 0) break
      const head = rest.slice(0, end)
      const status = Number(head.slice(9, 12))
      const isBare = status === 304 || status === 204 || status < 200 || (isHead && answers.length === 0)
      const from = end + 4
      const body = isBare ? { text: '', end: from } : bodyOf(head, rest, from)
      if (body === undefined) break
      rest = rest.slice(body.end)
      const isLastBare = isBare && /\r\nconnection: close/i.test(head)
      if (status >= 200) answers.push({ status, body: body.text, isLastBare })
    }
    return answers
  }

  close(): void {
    this.#connection.close()
  }
}

/** @returns undefined if the body is incomplete */
function bodyOf(head: string, text: string, from: number): { text: string; end: number } | undefined {
  if (/\r\ntransfer-encoding: chunked/i.test(head)) {
    const end = text.indexOf('\r\n0\r\n\r\n', from)
    return end < 0 ? undefined : { text: text.slice(from, end), end: end + 7 }
  }
  const stated = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  // Without a length, the body lasts until the connection is closed (RFC 9112, 6.3).
  const end = stated === undefined ? text.length : from + Number(stated)
  return end > text.length ? undefined : { text: text.slice(from, end), end }
}
