/** One solving thread: claims blocks of counters and hashes them until some thread has found an answer. */

import { hash } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { leadingZeroBits, proofInput } from '../protocol/proof.ts'

/** What the threads of one challenge share. */
export interface Race {
  readonly nonce: string
  /** Bits. */
  readonly difficulty: number
  /** Counters in a block, which is what a thread tries between two looks at the flag. */
  readonly blockSize: number
  /** Shared, one element: how many blocks of counters are claimed. */
  readonly claimedBlocks: Int32Array
  /** Shared, one element: 0 while the race is on, else 1. */
  readonly isOver: Int32Array
}

/** What a thread reports: that it hashes now, and, from the one that wins, the counter. */
export type RaceMessage = 'started' | number

const report = (message: RaceMessage) => parentPort!.postMessage(message)

const { nonce, difficulty, blockSize, claimedBlocks, isOver } = workerData as Race

report('started')

// No two threads claim the same block. From 0 upwards, rather than far apart, keeps counters below 2^31, where
// turning them into text takes so much less time that a thread tries a fifth more of them.
while (Atomics.load(isOver, 0) === 0) {
  const counter = search(Atomics.add(claimedBlocks, 0, 1) * blockSize)
  const isFirst = counter !== undefined && Atomics.exchange(isOver, 0, 1) === 0
  if (isFirst) report(counter)
}

/** A counter of the block that starts here, if one solves the challenge. */
function search(start: number): number | undefined {
  for (let counter = start; counter < start + blockSize; counter++) {
    // As text a digest costs no typed array. Difficulties start at 16 bits: most digests fail on their first byte.
    const digest = hash('sha256', proofInput(nonce, counter), 'binary')
    if (digest.charCodeAt(0) === 0 && leadingZeroBits(Buffer.from(digest, 'latin1')) >= difficulty)
      return counter
  }
  return undefined
}
