/** From nothing to a token: challenge, proof, verification, and over again where a fresh challenge helps. */

import type { Solution } from '../protocol/wire.ts'
import { distrust, type ModeSettings, openWorkplace, type Workplace } from './modes.ts'
import { getChallenge, PowGateError, postSolution, type ServiceSettings, throwIfAborted } from './service.ts'
import { environmentFlags, fingerprintHash } from './signals.ts'
import type { Solved } from './solver/job.ts'

/** Challenges asked for in one verification. */
const ROUNDS_MAX = 4

/**
 * What a fresh challenge may mend: the old one is too old, spent, or of another address; or the solver failed, and
 * another place to solve in may not.
 */
const AGAIN_CODES = ['expired-nonce', 'ip-mismatch', 'nonce-used', 'invalid-nonce', 'solver']

export interface FlowSettings extends ServiceSettings, ModeSettings {
  /** @param share 0 to 1: how likely a solver is done by now, which is as good as progress gets here */
  readonly onProgress: (share: number) => void
}

export interface Passed {
  readonly token: string
  /** Unix time by the service's clock, milliseconds. */
  readonly expiresAt: number
  /** How long the token lives from its issue on. */
  readonly lifetimeMs: number
  readonly solveTimeMs: number
  readonly difficulty: number
  readonly mode: Workplace['mode']
  readonly solved: Solved
}

/** @throws PowGateError */
export async function obtainToken(settings: FlowSettings): Promise<Passed> {
  for (let round = 1; ; round++) {
    try {
      return await oneRound(settings)
    } catch (error) {
      if (!(error instanceof PowGateError)) throw error
      const { code, message, status } = error
      if (!AGAIN_CODES.includes(code)) throw error
      if (round === ROUNDS_MAX) throw new PowGateError(code, 'unavailable', message, status)
    }
  }
}

async function oneRound(settings: FlowSettings): Promise<Passed> {
  const { signal, onProgress } = settings
  // Workers start while the challenge is on its way.
  let opening = openWorkplace(settings)
  opening.catch(() => {}) // whether it failed is looked at when it is needed
  const close = () => {
    opening.then(
      workplace => workplace.close(),
      () => {},
    )
  }
  signal.addEventListener('abort', close)
  try {
    const { nonce, difficulty } = await getChallenge(settings)
    const beganMs = performance.now()
    const expected = 2 ** difficulty
    // It may have failed for want of a network that is back by now.
    opening = opening.catch(() => openWorkplace(settings))
    opening.catch(() => {})
    const workplace = await untilAborted(opening, signal).catch(error => {
      throw solverError(error)
    })
    const solving = workplace.solve(
      { nonce, difficulty },
      tries => onProgress(1 - Math.exp(-tries / expected)),
      signal,
    )
    const solved = await untilAborted(solving, signal).catch(error => {
      if (!signal.aborted) distrust(workplace.mode)
      throw solverError(error)
    })
    const solveTimeMs = Math.round(performance.now() - beganMs)
    const solution: Solution = {
      nonce,
      counter: solved.counter,
      solveTimeMs,
      fingerprintHash: fingerprintHash(solved),
      environment: environmentFlags(solved.renderer),
    }
    const result = await postSolution(settings, solution)
    if (!result.passed) throw new PowGateError('not-passed', 'rejected', 'the verification did not pass')
    const { token, expiresAt } = result
    // The token starts with the time of its issue: the visitor's clock may be wrong, a lifetime is not.
    const lifetimeMs = expiresAt - Number.parseInt(token, 10)
    return { token, expiresAt, lifetimeMs, solveTimeMs, difficulty, mode: workplace.mode, solved }
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

/** A closed workplace never answers. */
function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const check = () => {
      try {
        throwIfAborted(signal)
      } catch (error) {
        reject(error)
      }
    }
    check()
    signal.addEventListener('abort', check)
    work.then(resolve, reject)
  })
}

function solverError(error: unknown): PowGateError {
  if (error instanceof PowGateError) return error
  return new PowGateError('solver', 'unavailable', `the solver failed: ${error}`)
}
