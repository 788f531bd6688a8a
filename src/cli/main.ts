#!/usr/bin/env node

import '../process/supported-platform.ts'
import { answer } from './run.ts'

// A reader may close the pipe early, like `head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

process.exitCode = await answer(process.argv.slice(2))
