#!/usr/bin/env node

// Alone: on Node.js 18 the rest does not even link, with words that tell nobody why.
await import('../process/supported-platform.ts')
const { answer } = await import('./run.ts')
const { lostOutput } = await import('./output.ts')

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  const lost = lostOutput(error)
  if (lost !== undefined) process.stderr.write(`${lost}\n`)
  process.exit(lost === undefined ? 0 : 1)
})

process.exitCode = await answer(process.argv.slice(2))

export {}
