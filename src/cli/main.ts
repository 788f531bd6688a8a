#!/usr/bin/env node
// The command `powgate`. Only `serve` handles signals from the first moment, since it may be process 1 of a container.
if (process.argv[2] === 'serve') await import('../process/early-signals.ts')
// This import must come before the rest: on Node.js 18 the other modules do not link, and that error would tell nobody why.
await import('../process/supported-platform.ts')
const { answer } = await import('./run.ts')
const { lostOutputText } = await import('./output.ts')

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  const text = lostOutputText(error)
  if (text !== undefined) process.stderr.write(`${text}\n`)
  if (text !== undefined) process.exit(1) // otherwise nothing is lost, and the command's own code stands
})

process.exitCode = await answer(process.argv.slice(2))
