/** Entry of a worker of the bench: one contender on one thread. */

import type { Order, RunResult } from '../contenders.ts'
import { HASHERS, type Hasher } from './hashers.ts'

let hasher: Hasher

addEventListener('message', ({ data }: MessageEvent<Order>) => {
  carryOut(data).then(
    result => postMessage(result),
    // The page hears of errors, but not of rejected promises.
    error =>
      setTimeout(() => {
        throw error
      }),
  )
})

async function carryOut(order: Order): Promise<RunResult | number | undefined> {
  switch (order.kind) {
    case 'open':
      hasher = await HASHERS[order.contender](order.nonce)
      return
    case 'run':
      return run(order.ms)
    case 'find':
      return hasher.find(order.bits)
  }
}

function run(ms: number): RunResult {
  const startMs = performance.now()
  for (let hashes = 0; ; ) {
    hashes += hasher.step()
    const elapsedMs = performance.now() - startMs
    if (elapsedMs >= ms) return { hashes, ms: elapsedMs }
  }
}
