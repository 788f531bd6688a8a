/**
 * Entry point. Signals are handled before the rest is loaded, which takes a moment: the kernel keeps those without a handler
 * from process 1 of a container.
 */

import cluster from 'node:cluster'

/** Until others handle the signal too: nothing is under way yet. */
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0))
/** Without a handler, one opens a debugger and the other ends the process. */
for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {})

const [, program, ...typed] = process.argv
if (cluster.isPrimary && program === import.meta.filename && typed.length > 0) {
  const command = ['node', program.replace(/main\.js$/, 'cli/main.js'), ...typed].join(' ')
  process.stderr.write(`${program} runs the service and takes no arguments. For a command: ${command}\n`)
  process.exit(2)
}
await import('./start.ts')
