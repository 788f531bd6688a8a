/** Solving where a person watches: a line on the terminal that tells how far it is. */

import { availableParallelism } from 'node:os'
import { type Puzzle, type Solved, solve } from './solver.ts'

const CLEAR_LINE = '\r\x1b[K'

/** Solves on all cores. The line goes to stderr, and only to a terminal: it is no part of the result. */
export async function solveWithProgress(puzzle: Puzzle): Promise<Solved> {
  const threads = availableParallelism()
  if (!process.stderr.isTTY) return solve(puzzle, { threads })
  const onProgress = (hashes: number, ms: number) => {
    process.stderr.write(`${CLEAR_LINE}solving: ${progressText(puzzle.difficulty, hashes, ms)}`)
  }
  try {
    return await solve(puzzle, { threads, onProgress })
  } finally {
    process.stderr.write(CLEAR_LINE)
  }
}

/** Short enough not to wrap at 80 columns, where a line could not be cleared. */
function progressText(difficulty: number, hashes: number, ms: number): string {
  return `${millions(hashes)} of about ${millions(2 ** difficulty)} million hashes, ${rateText(hashes, ms)}`
}

export function effortText({ hashes, hashingMs }: Solved): string {
  return `${millions(hashes)} million hashes, ${rateText(hashes, hashingMs)}`
}

function millions(count: number): string {
  return (count / 1e6).toFixed(2)
}

function rateText(hashes: number, ms: number): string {
  return `${(hashes / ms / 1000).toFixed(2)} MH/s, ${(ms / 1000).toFixed(1)} s`
}
