/** Handles signals before the rest is loaded: the kernel drops signals without a handler for process 1 of a container. */

/** These signals end the process at once, until the rest of the program handles them too: no request is in flight yet. */
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0))
/** Without a handler, SIGUSR1 opens a debugger, and the others end the process. The start reads all settings anyway, so it needs no SIGHUP. */
for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {})
