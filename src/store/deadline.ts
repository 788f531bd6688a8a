/** The promise's outcome, or a rejection after `ms`: for calls that are not on the request path. */
export function withDeadline<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      // A stalled event loop runs timers before it reads sockets, so the rejection waits until the sockets were read.
      setImmediate(() => reject(new Error(`${what}: no answer within ${ms} ms`)))
    }, ms)
    promise.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
