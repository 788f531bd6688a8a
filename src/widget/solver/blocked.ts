/** The page's policy, or its browser, refuses a mode: trying again later would fail again. */
export class ModeBlockedError extends Error {
  override readonly name = 'ModeBlockedError'
}

const LOAD_MS_MAX = 10_000

/** For requests: aborts after ten seconds. */
export function patience(): AbortSignal {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), LOAD_MS_MAX)
  return controller.signal
}
