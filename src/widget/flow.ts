/** Obtains a token: challenge, proof, verification, and another round where a fresh challenge helps. */

import type { PuzzleName } from '../protocol/proof.ts'
import type { Challenge } from '../protocol/wire.ts'
import { nowMs, sleep } from './dom.ts'
import { type ModeSettings, openWorkplace, searchOnGpu } from './modes.ts'
import {
  type CallSettings,
  getChallenge,
  PowGateError,
  postSolution,
  untilAborted,
  withRetries,
} from './service.ts'
import { environmentFlags } from './signals.ts'
import type { Workplace } from './solver/job.ts'

/** Challenges in one verification. A device that solves none of them has computed for 7.5 minutes or longer. */
const ROUNDS_MAX = 4

/** The code for a challenge that a slow device gives up before it expires. */
const OUTLIVED = 'outlived'

/** A fresh challenge may help, or for `solver` another mode. */
const AGAIN_CODES = [OUTLIVED, 'expired-nonce', 'ip-mismatch', 'nonce-used', 'invalid-nonce', 'solver']

type FlowSettings = CallSettings &
  ModeSettings & {
    /** @param share 0 to 1: the probability that a solver is done by now */
    readonly onProgress: (share: number) => void
    /** Tells whether this device hashes. A verification's other steps wait for the service. */
    readonly onHashing: (isHashing: boolean) => void
  }

export type Passed = Awaited<ReturnType<typeof oneRound>>

/** The contract requires the field: SHA-256 of nothing, because the widget makes no fingerprint. */
const NO_FINGERPRINT = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** The solver must load within this time, in any mode. */
const ASSETS_SECONDS_MAX = 20

/** @throws PowGateError */
export async function obtainToken(settings: FlowSettings): Promise<Passed> {
  /** Hashes of all rounds, each divided by what its challenge takes on average. */
  let work = 0
  for (let round = 1; ; ) {
    const workBefore = work
    try {
      return await oneRound(settings, workOfRound => {
        work = workBefore + workOfRound
        settings.onProgress(1 - Math.exp(-work))
      })
    } catch (error) {
      if (!(error instanceof PowGateError)) throw error
      const { code, message, status } = error
      if (!AGAIN_CODES.includes(code)) throw error
      const text = code === 'expired-nonce' || code === OUTLIVED ? 'expired' : 'unavailable'
      if (round++ === ROUNDS_MAX) throw new PowGateError(code, text, message, status)
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
  const left = new Promise<void>(resolve => {
    leave = resolve
  })
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
    ...settings.page,
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

/** Gets a challenge and solves it. However this ends, workers and frame are closed, and the queue is left. */
async function solveChallenge(settings: FlowSettings, onWork: (work: number) => void) {
  const leaveQueue = await enterQueue(settings.signal)
  // Workers start while the challenge is on its way.
  let opening = openWorkplace(settings, lastPuzzle)
  opening.catch(() => {}) // openFor tries again
  const ended = new AbortController()
  const { signal } = ended
  const end = () => {
    ended.abort()
    leaveQueue()
    opening.then(workplace => workplace.close()).catch(() => {})
  }
  settings.signal.addEventListener('abort', end)
  let isWaiting = false
  /** Settings of the steps that may wait: for the challenge, and for the solver's files. */
  const patient: FlowSettings = {
    ...settings,
    signal,
    onWait: (reason, ms) => {
      isWaiting = reason !== undefined
      if (isWaiting) leaveQueue() // Another element may solve meanwhile, perhaps for another service.
      settings.onWait(reason, ms)
    },
  }
  try {
    const challenge = await getChallenge(patient)
    const { difficulty, algorithm } = challenge
    const outlived = sleep(usableMs(challenge))
    const beganMs = nowMs()
    lastPuzzle = algorithm
    opening = openFor(patient, algorithm, opening)
    const late = failAfterLoading(() => !isWaiting, signal)
    const workplace = await untilAborted(Promise.race([opening, late]), signal)
    let gpuTries = 0
    const gpuCounter = searchOnGpu(settings, challenge, tries => {
      gpuTries = tries
      return !signal.aborted
    })
    const onTries = (tries: number) => onWork((tries + gpuTries) / 2 ** difficulty)
    const giveUp = () => {
      throw new PowGateError(OUTLIVED, 'expired', 'the device is too slow')
    }
    settings.onHashing(true)
    try {
      const solving = workplace.solve(challenge, onTries, gpuCounter)
      const solved = await untilAborted(Promise.race([solving, outlived.then(giveUp)]), signal)
      solved.tries += gpuTries
      return { challenge, solved, mode: workplace.mode, solveTimeMs: Math.round(nowMs() - beganMs) }
    } catch (error) {
      if (error instanceof PowGateError) throw error
      throw new PowGateError('solver', 'unavailable', `the solver failed: ${error}`)
    } finally {
      settings.onHashing(false)
    }
  } finally {
    settings.signal.removeEventListener('abort', end)
    end()
  }
}

/** Opens a new workplace if the first one failed or is for another puzzle, and again if the files are refused for a while. */
async function openFor(
  settings: FlowSettings,
  puzzle: PuzzleName,
  opening: Promise<Workplace>,
): Promise<Workplace> {
  const opened = await opening.catch(() => undefined)
  if (opened?.puzzle === puzzle) return opened
  opened?.close()
  return withRetries(settings, () =>
    openWorkplace(settings, puzzle).then(
      answer => ({ answer }),
      error => ({ error: notLoaded(error), reason: 'network' as const }),
    ),
  )
}

const EPOCH_2024_MS = Date.UTC(2024, 0, 1)

/**
 * A challenge is worth solving for 95 % of its life less 1.5 s, because /verify takes time too. Its life counts from the issue
 * time, with which a nonce starts in 41 bits, and not by the visitor's clock. The service's longest is 10 minutes.
 */
function usableMs({ nonce, expiresAt }: Challenge): number {
  const issuedAt = EPOCH_2024_MS + Number.parseInt(nonce.slice(0, 11), 16) / 8
  const lifetimeMs = Math.min(Math.max(expiresAt - issuedAt || 600_000, 10_000), 600_000)
  return lifetimeMs * 0.95 - 1500
}

/** Counts only seconds in which the page runs and loads: a phone that slept meanwhile has loaded nothing. */
function failAfterLoading(isLoading: () => boolean, signal: AbortSignal): Promise<never> {
  let secondsLeft = ASSETS_SECONDS_MAX
  return new Promise((_, reject) => {
    const timer = setInterval(() => {
      if (isLoading() && --secondsLeft === 0) reject(notLoaded('no answer'))
    }, 1000)
    signal.addEventListener('abort', () => clearInterval(timer))
  })
}

const notLoaded = (why: unknown) => new PowGateError('assets', 'network', `the solver does not load: ${why}`)
