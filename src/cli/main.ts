#!/usr/bin/env node

// This import must come first: on Node.js 18 the other modules do not link, and that error would tell nobody why.
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
