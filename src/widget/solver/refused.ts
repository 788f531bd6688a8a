/** The page's policy, or its browser, does not let it: trying again later would be refused again. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

const LOAD_MS_MAX = 10_000

/** For what is loaded: aborts after ten seconds. */
export function patience(): AbortSignal {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), LOAD_MS_MAX)
  return controller.signal
}
