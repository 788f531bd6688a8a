#!/usr/bin/env node

// This import must come first: on Node.js 18 the other modules do not link, and that error would tell nobody why.
await import('../process/supported-platform.ts')
const { answer } = await import('./run.ts')
const { lostOutputText } = await import('./output.ts')

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  const text = lostOutputText(error)
  if (text !== undefined) process.stderr.write(`${text}\n`)
  process.exit(text === undefined ? 0 : 1) // undefined: nothing is lost
})

process.exitCode = await answer(process.argv.slice(2))
