/** Obtains a token: challenge, proof, verification, and another round where a fresh challenge helps. */

import { NONCE_TIME_ZERO_MS, type PuzzleName } from '../protocol/proof.ts'
import type { Challenge } from '../protocol/wire.ts'
import { nowMs, sleep } from './dom.ts'
import { type ModeSettings, openSession, searchOnGpu } from './modes.ts'
import {
  type CallSettings,
  getChallenge,
  PowGateError,
  postSolution,
  throwIfAborted,
  untilAborted,
  withRetries,
} from './service.ts'
import { environmentFlags } from './signals.ts'
import type { Job, Solved, SolverSession } from './solver/job.ts'

/** Challenges in one verification. With the default lifetime of 2 minutes, the widget gives up after 7.5 minutes or more. */
const ROUNDS_MAX = 4

/** Error code: the device could not solve the challenge while it was worth it. */
const TOO_SLOW = 'outlived'

/** Errors after which another round may succeed: with a fresh challenge, and after `solver` in another mode (modes.ts), if any is left. */
const RETRIED_CODES = [TOO_SLOW, 'expired-nonce', 'ip-mismatch', 'nonce-used', 'invalid-nonce', 'solver']

type FlowSettings = CallSettings &
  ModeSettings & {
    /** @param share 0 to 1: the probability that a solver is done by now */
    readonly onProgress: (share: number) => void
    /** Tells whether this device hashes. A verification's other steps wait for the service. */
    readonly onHashing: (isHashing: boolean) => void
  }

export type FlowResult = Awaited<ReturnType<typeof oneRound>>

/** The contract requires the field: SHA-256 of nothing, because the widget makes no fingerprint. */
const NO_FINGERPRINT = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** The solver must load within this time, in any mode. */
const ASSETS_SECONDS_MAX = 20

/** @throws PowGateError */
export async function obtainToken(settings: FlowSettings): Promise<FlowResult> {
  /** Hashes of all rounds, each divided by what its challenge takes on average. */
  let work = 0
  for (let round = 1; ; round++) {
    const workBefore = work
    try {
      return await oneRound(settings, workOfRound => {
        work = workBefore + workOfRound
        settings.onProgress(1 - Math.exp(-work))
      })
    } catch (error) {
      if (!(error instanceof PowGateError)) throw new PowGateError('unexpected', 'rejected', `${error}`)
      const { code, message, status } = error
      if (!RETRIED_CODES.includes(code)) throw error
      if (round < ROUNDS_MAX) continue
      // The error of a single call may have another text, for the site's owner, whom these do not concern.
      const text = code === 'expired-nonce' || code === TOO_SLOW ? 'expired' : 'unavailable'
      throw new PowGateError(code, text, message, status)
    }
  }
}

/** The puzzle of the page's last challenge: workers start before the next challenge names its own. */
let lastPuzzle: PuzzleName = 'sha256'

/** Resolves when every element of the page that began a round has left the queue. */
let queue = Promise.resolve()

/** Waits until it is this element's turn, because each solves with all threads. Returns a function that leaves the queue. */
async function enterQueue(signal: AbortSignal): Promise<() => void> {
  const before = queue
  let leave!: () => void
  const left = new Promise<void>(resolve => (leave = resolve))
  queue = before.then(() => left)
  await untilAborted(before, signal).catch(error => {
    leave()
    throw error
  })
  return leave
}

/** @param onWork told the round's hashes so far, as a multiple of what its challenge takes on average */
async function oneRound(settings: FlowSettings, onWork: (work: number) => void) {
  const { challenge, solved, mode, solveTimeMs } = await solveChallenge(settings, onWork)
  const { nonce, difficulty, signals } = challenge
  const result = await postSolution(settings, {
    nonce,
    counter: solved.counter,
    solveTimeMs,
    fingerprintHash: NO_FINGERPRINT,
    ...(signals === 'none' ? {} : { environment: environmentFlags(solved.renderer) }),
    ...settings.bound,
  })
  if (!result.passed) throw new PowGateError('not-passed', 'rejected', 'the verification did not pass')
  const { token } = result
  // A token starts with its issue time. The visitor's clock may be wrong, so the lifetime counts from there.
  const lifetimeMs = result.expiresAt - Number.parseInt(token, 10)
  return {
    token,
    lifetimeMs,
    /** Unix time by the page's clock, milliseconds. */
    expiresAt: Date.now() + lifetimeMs,
    solveTimeMs,
    difficulty,
    mode,
    solved,
  }
}

/** Gets a challenge and solves it. However this ends, the solver is closed, and the queue is left, if `onWait` has not left it. */
async function solveChallenge(settings: FlowSettings, onWork: (work: number) => void) {
  const leaveQueue = await enterQueue(settings.signal)
  /** Aborts however the round ends. All that belongs to the round stops by this signal. */
  const roundEnd = new AbortController()
  const { signal } = roundEnd
  const end = () => {
    roundEnd.abort()
    leaveQueue()
  }
  settings.signal.addEventListener('abort', end)
  let isWaiting = false
  const roundSettings: FlowSettings = {
    ...settings,
    signal,
    onWait: (reason, ms) => {
      isWaiting = reason !== undefined
      if (isWaiting) leaveQueue() // Another element may solve meanwhile, for another service perhaps. This round queues no more.
      settings.onWait(reason, ms)
    },
  }
  try {
    throwIfAborted(settings.signal) // What aborts between the turn in the queue and `addEventListener` calls no listener.
    // Workers start while the challenge is on its way.
    const earlyPuzzle = lastPuzzle
    const early = openSession(roundSettings, earlyPuzzle)
    early.catch(() => {}) // Its error is not told: another solver is opened instead.
    const challenge = await getChallenge(roundSettings)
    const deadline = sleep(usableMs(challenge))
    const beganMs = nowMs()
    lastPuzzle = challenge.algorithm
    const open = () => openWithRetries(roundSettings, challenge.algorithm)
    const opening = earlyPuzzle === challenge.algorithm ? early.catch(open) : open() // `roundEnd` closes an early one for another puzzle
    const loadTimeout = rejectAfterLoadingSeconds(() => !isWaiting, signal)
    const solver = await untilAborted(Promise.race([opening, loadTimeout]), signal)
    const solved = await solve(roundSettings, solver, challenge, deadline, onWork)
    return { challenge, solved, mode: solver.mode, solveTimeMs: Math.round(nowMs() - beganMs) }
  } finally {
    settings.signal.removeEventListener('abort', end)
    end()
  }
}

/** @param deadline resolves when the challenge is not worth solving any more */
async function solve(
  settings: FlowSettings,
  solver: SolverSession,
  challenge: Job,
  deadline: Promise<unknown>,
  onWork: (work: number) => void,
): Promise<Solved> {
  const { signal, onHashing } = settings
  let gpuTries = 0
  const gpuCounter = searchOnGpu(settings, challenge, tries => {
    gpuTries = tries
    return !signal.aborted
  })
  const onTries = (tries: number) => onWork((tries + gpuTries) / 2 ** challenge.difficulty)
  const giveUp = () => {
    throw new PowGateError(TOO_SLOW, 'expired', 'the device is too slow')
  }
  onHashing(true)
  try {
    const solving = solver.solve(challenge, onTries, gpuCounter)
    const solved = await untilAborted(Promise.race([solving, deadline.then(giveUp)]), signal)
    return { ...solved, tries: solved.tries + gpuTries }
  } catch (error) {
    if (error instanceof PowGateError) throw error
    throw new PowGateError('solver', 'unavailable', `the solver failed: ${error}`)
  } finally {
    onHashing(false)
  }
}

/** Opens a solver, and again if its files are refused for a while. */
function openWithRetries(settings: FlowSettings, puzzle: PuzzleName): Promise<SolverSession> {
  return withRetries(settings, () =>
    openSession(settings, puzzle).then(
      answer => ({ answer }),
      error => ({ error: notLoaded(error), reason: 'network' as const }),
    ),
  )
}

/**
 * A challenge is worth solving for 95 % of its lifetime less 1.5 s, because /verify takes time too. Issue time and end are both by
 * the service's clock, as the visitor's may be wrong. 11 digits of the nonce are 44 bits, of which the first 41 are the issue time:
 * `/ 8` makes the others fractions of a millisecond. Lifetimes are 10 s to 10 minutes; one that cannot be read (NaN) counts as the longest.
 */
function usableMs({ nonce, expiresAt }: Challenge): number {
  const issuedAt = NONCE_TIME_ZERO_MS + Number.parseInt(nonce.slice(0, 11), 16) / 8
  const lifetimeMs = Math.min(Math.max(expiresAt - issuedAt || 600_000, 10_000), 600_000)
  return lifetimeMs * 0.95 - 1500
}

/** Counts only seconds in which the page runs and loads: a phone that slept meanwhile has loaded nothing. */
function rejectAfterLoadingSeconds(isLoading: () => boolean, signal: AbortSignal): Promise<never> {
  let secondsLeft = ASSETS_SECONDS_MAX
  return new Promise((_, reject) => {
    const timer = setInterval(() => {
      if (isLoading() && --secondsLeft === 0) reject(notLoaded('no answer'))
    }, 1000)
    signal.addEventListener('abort', () => clearInterval(timer))
  })
}

const notLoaded = (why: unknown) => new PowGateError('assets', 'network', `the solver does not load: ${why}`)
