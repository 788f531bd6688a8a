/** Handles signals before loading the rest: in a container's process 1, the kernel drops those without a handler. */

import cluster from 'node:cluster'

/** Until start.ts handles them: nothing is under way yet. */
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0))
/** By default, one opens a debugger and the other ends the process. */
for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {})

const [, program, ...typed] = process.argv
if (cluster.isPrimary && program === import.meta.filename && typed.length > 0) {
  const { shellWord } = await import('./config/config.ts')
  const command = ['node', program.replace(/main\.js$/, 'cli/main.js'), ...typed].map(shellWord).join(' ')
  process.stderr.write(`${program} runs the service and takes no arguments. For a command: ${command}\n`)
  process.exit(2)
}
// Alone: on Node.js 18 the rest does not even link, with words that tell nobody why.
await import('./process/supported-platform.ts')
await import('./start.ts')
