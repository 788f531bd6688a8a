/** A child process with the modules of one tree. It runs one measurement at a time. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { THIS_TREE } from './tree.ts'

export interface TreeProcess<Order, Answer> {
  /** Rejects if it cannot, with its reason. */
  ask(order: Order): Promise<Answer>
  /** Resolves when it has ended, and whatever it had started. */
  stop(): Promise<void>
}

export type TreeAnswer<Answer> =
  | { readonly type: 'answer'; readonly answer: Answer }
  | { readonly type: 'failed'; readonly problem: string }

/** To put an end to what it measures and to stop its servers. */
const STOP_MS_MAX = 15_000

/** @param script its entry, which gets the root of its tree as an argument */
export function startTreeProcess<Order extends object, Answer>(
  script: string,
  root: string,
): TreeProcess<Order, Answer> {
  const child = fork(script, [root], { cwd: THIS_TREE, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  return {
    ask: order =>
      new Promise((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`the process has ended with ${code}`))
        child.once('exit', onExit)
        child.once('message', (message: TreeAnswer<Answer>) => {
          child.off('exit', onExit)
          if (message.type === 'failed') reject(new Error(message.problem))
          else resolve(message.answer)
        })
        child.send(order, error => {
          if (error !== null) reject(error)
        })
      }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      if (child.connected) child.disconnect()
      await ended
      clearTimeout(timer)
    },
  }
}

/** The other side: answers orders until the bench has gone. */
export function obey<Order, Answer>(
  answer: (order: Order) => Promise<Answer>,
  clean: () => Promise<void> = async () => {},
): void {
  const send = (message: TreeAnswer<Answer>) => {
    if (process.connected) process.send!(message)
  }
  process.on('message', (order: Order) => {
    answer(order).then(
      value => send({ type: 'answer', answer: value }),
      (error: Error) => send({ type: 'failed', problem: error.message }),
    )
  })
  // From a terminal Ctrl-C comes to all processes; the bench ends this one when it is time.
  process.on('SIGINT', () => {})
  process.on('disconnect', () => void clean().finally(() => process.exit()))
}
