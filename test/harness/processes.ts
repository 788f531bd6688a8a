/** Processes that tests and benches start, and what the system reports of any process. */

import { type ChildProcess, execFileSync, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { after } from 'node:test'

/** Servers and browsers that run. One that a failed test left would keep the whole run waiting, so a test file stops all at its end. */
export const leftovers = new Set<{ stop(): Promise<void> }>()

if (process.argv[1]?.endsWith('.test.ts')) {
  after(async () => {
    for (const server of [...leftovers].reverse()) await server.stop()
  })
}

let isStopping = false

/** Whether a signal has come: what fails from then on fails because its server has gone. */
export function hasSignal(): boolean {
  return isStopping
}

/**
 * On SIGINT or SIGTERM stops what runs, and what is started meanwhile, and ends this process with 1.
 *
 * @param tellResults tells what was found by then
 */
export function stopOnSignal(tellResults: () => void = () => {}): void {
  const stop = async () => {
    if (isStopping) return
    isStopping = true
    process.stderr.write('stopped before the end\n')
    while (leftovers.size > 0)
      for (const server of [...leftovers].reverse()) await server.stop().then(() => leftovers.delete(server))
    tellResults()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => void stop().finally(() => process.exit(1)))
}

export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

export async function endProcess(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

export function listeningPids(port: number): number[] {
  const table = execFileSync('ss', ['-ltnpH', `sport = :${port}`]).toString()
  const pids = [...table.matchAll(/pid=(\d+)/g)].map(match => Number(match[1]))
  return [...new Set(pids)] // each listens with several sockets
}

/** Both ends of the TCP connections that a process has on IPv4. */
export function connectionsOf(pid: number) {
  const table = execFileSync('ss', ['-4tnpH']).toString()
  return table.split('\n').flatMap(line => {
    const [, local, peer, peerPort] = /\s([\d.]+):\d+\s+([\d.]+):(\d+)\s/.exec(line) ?? []
    const isOwn = line.includes(`pid=${pid},`) && local !== undefined && peer !== undefined
    return isOwn ? [{ local, peer, peerPort: Number(peerPort) }] : []
  })
}

/** The children that are alive, of all threads, in ascending order (Linux, /proc). */
export function childPids(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap(thread => readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' '))
    .filter(text => text.trim() !== '')
    .map(Number)
    .sort((a, b) => a - b)
}

export function workerPids(pid: number): number[] {
  return childPids(pid).filter(child => !isStore(child))
}

/** The store process of a service; undefined while it is started anew. */
export function storePid(pid: number): number | undefined {
  return childPids(pid).find(isStore)
}

/** Recognises the store process also before it has given itself a name. */
function isStore(pid: number): boolean {
  try {
    return /^powgate store|store\/embedded\/process/.test(readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
  } catch {
    return false // it has just ended
  }
}

/** @returns false if the process has ended, for instance because another part of the case killed it */
export function signalIfThere(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

/** A process that has ended and is not yet waited for by its parent is not alive. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

type Answer = { readonly result: unknown } | { readonly problem: string }

/** A child process that executes orders, one at a time: a load generator, whose CPU time is counted apart, or another checkout's code. */
export class OrderProcess<Order> {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  /** @param entry a module that calls `carryOut` */
  constructor(entry: string | URL, args: readonly string[] = [], options: ForkOptions = {}) {
    // Structured clones, so that Infinity stays Infinity.
    this.#child = fork(entry, [...args], { serialization: 'advanced', ...options })
    this.#ended = once(this.#child, 'exit')
  }

  /** Rejects with the reason if the order cannot be done. */
  ask<Result>(order: Order): Promise<Result> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null) => reject(new Error(`the process has ended with ${code}`))
      this.#child.once('exit', onExit)
      this.#child.once('message', (answer: Answer) => {
        this.#child.off('exit', onExit)
        if ('problem' in answer) reject(new Error(answer.problem))
        else resolve(answer.result as Result)
      })
      // Without a callback, a process that has gone would end this one before its servers are stopped.
      this.#child.send(order as object, error => {
        if (error !== null) reject(error)
      })
    })
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  /** Resolves when the process has ended, and whatever it had started. */
  async stop(): Promise<void> {
    if (hasEnded(this.#child)) return
    const timer = setTimeout(() => this.kill(), 15_000)
    if (this.#child.connected) this.#child.disconnect()
    await this.#ended
    clearTimeout(timer)
  }
}

/** The other side: carries out orders until its parent has gone. */
export function carryOut<Order>(
  act: (order: Order) => Promise<unknown>,
  clean: () => Promise<void> = async () => {},
): void {
  const send = (answer: Answer) => {
    if (process.connected) process.send!(answer)
  }
  process.on('message', (order: Order) => {
    act(order).then(
      result => send({ result }),
      (error: Error) => send({ problem: error.message }),
    )
  })
  // From a terminal Ctrl-C comes to all processes; the parent ends this one when it is time.
  process.on('SIGINT', () => {})
  process.on('disconnect', () => void clean().finally(() => process.exit()))
}
