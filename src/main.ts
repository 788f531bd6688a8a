/** Handles signals before loading the rest: the kernel drops signals without a handler for process 1 of a container. */

import cluster from 'node:cluster'

/** They end the process at once until the rest handles them too: nothing is in flight yet. */
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0))
/** SIGUSR1 would open a debugger, and the others end the process. The start reads all settings, so it needs no SIGHUP. */
for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {})

const [, program, ...typed] = process.argv
if (cluster.isPrimary && program === import.meta.filename && typed.length > 0) {
  const { shellWord } = await import('./config/config.ts')
  const command = ['node', program.replace(/main\.js$/, 'cli/main.js'), ...typed].map(shellWord).join(' ')
  process.stderr.write(`${program} runs the service and takes no arguments. For a command: ${command}\n`)
  process.exit(2)
}
// This import must come before the rest, which does not even link on Node.js 18, and whose error tells nobody why.
await import('./process/supported-platform.ts')
await import('./start.ts')
