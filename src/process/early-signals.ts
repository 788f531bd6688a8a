/** Handles signals before the rest is loaded: the kernel drops signals without a handler for process 1 of a container. */

/** They end the process at once until the rest handles them too: nothing is in flight yet. */
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0))
/** SIGUSR1 would open a debugger, and the others end the process. The start reads all settings, so it needs no SIGHUP. */
for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {})
