/**
 * Thousands of slow clients in a process of their own, so that their cost does not affect the measured honest clients. This
 * file is also the entry of that process.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { setPriority } from 'node:os'
import { SLOW_KINDS, SlowClient } from './slow-clients.ts'

export interface CrowdOrder {
  /** Indices into SLOW_KINDS, one for each client. */
  readonly kinds: readonly number[]
  readonly port: number
  readonly siteKey: string
  /** Sent first for the PROXY protocol, hexadecimal; empty: nothing. */
  readonly header: string
}

export interface CrowdState {
  readonly connected: number
  /** Clients that could not connect. */
  readonly failed: number
  /** Clients whose connections the service has not ended. */
  readonly left: number
  readonly leftKinds: readonly string[]
  /** The longest life of ended connections, by group. */
  readonly livedMs: Readonly<Record<string, number>>
}

const TELL_MS = 100
const STEP_MS = 5
/** Clients opened in each step: 2,000 a second. */
const STEP_CLIENTS = 10

export class SlowCrowd {
  readonly #process: ChildProcess
  #state: CrowdState = { connected: 0, failed: 0, left: 0, leftKinds: [], livedMs: {} }
  #heardAtMs = 0

  constructor(order: CrowdOrder) {
    this.#process = fork(new URL(import.meta.url).pathname, ['crowd'])
    this.#process.on('message', (state: CrowdState) => {
      this.#state = state
      this.#heardAtMs = performance.now()
    })
    this.#process.send(order)
  }

  /** The state a moment ago; all zero until all clients have been opened. */
  get state(): CrowdState {
    return this.#state
  }

  get isAlive(): boolean {
    return performance.now() - this.#heardAtMs < 10_000
  }

  stop(): void {
    this.#process.kill('SIGKILL')
  }
}

async function open({ kinds, port, siteKey, header }: CrowdOrder): Promise<void> {
  const first = Buffer.from(header, 'hex')
  const clients: SlowClient[] = []
  for (const index of kinds) {
    clients.push(new SlowClient(SLOW_KINDS[index]!, port, siteKey, first))
    if (clients.length % STEP_CLIENTS === 0) await new Promise(resolve => setTimeout(resolve, STEP_MS))
  }
  setInterval(() => process.send!(stateOf(clients)), TELL_MS)
}

function stateOf(clients: readonly SlowClient[]): CrowdState {
  const connected = clients.filter(({ connectedAtMs }) => connectedAtMs !== undefined)
  const livedMs: Record<string, number> = {}
  const leftKinds = new Set<string>()
  let left = 0
  for (const { kind, connectedAtMs, endedAtMs } of clients) {
    if (endedAtMs === undefined) {
      left++
      leftKinds.add(kind.name)
    } else if (connectedAtMs !== undefined) {
      livedMs[kind.group] = Math.max(livedMs[kind.group] ?? 0, endedAtMs - connectedAtMs)
    }
  }
  const failed = clients.filter(
    client => client.connectedAtMs === undefined && client.endedAtMs !== undefined,
  )
  return { connected: connected.length, failed: failed.length, left, leftKinds: [...leftKinds], livedMs }
}

if (process.argv[2] === 'crowd' && process.send !== undefined) {
  // A lower priority than the measured clients and the service.
  setPriority(10)
  process.once('message', (order: CrowdOrder) => void open(order))
  process.once('disconnect', () => process.exit())
}
