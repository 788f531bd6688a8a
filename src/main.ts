/** Runs the service: `node dist/main.js`, or `powgate serve`, which loads this. */

import cluster from 'node:cluster'

await import('./process/early-signals.ts')
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
