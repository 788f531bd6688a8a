/** Waits, with a bound, for what other processes do in their own time. */

/** The usual bound: how long a busy machine may take for what an idle one does in a moment. */
export const PATIENCE_MS = 60_000

/** Calls `probe` every 10 ms until it gives more than undefined, null or false. @param what is awaited: named if `ms` pass before */
export async function eventually<T>(
  ms: number,
  what: string | (() => string),
  probe: () => Promise<T> | T,
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + ms
  const name = () => (typeof what === 'string' ? what : what())
  for (;;) {
    const value = await within(ms + PATIENCE_MS, Promise.resolve(probe()), name) // a probe that hangs is told
    if (value !== undefined && value !== null && value !== false) return value as NonNullable<T>
    if (performance.now() > giveUpAt) throw new Error(`not within ${ms} ms: ${name()}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** Settles as the promise does, or rejects after `ms`. */
export async function within<T>(ms: number, promise: Promise<T>, what: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms: ${what()}`)), ms)
  })
  try {
    return await Promise.race([promise, tooLate])
  } finally {
    clearTimeout(timer)
  }
}
