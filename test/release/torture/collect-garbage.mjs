/** Loaded first into each process of a service (memory.ts): on SIGUSR2 collects all garbage, and notes the bytes that its heap keeps. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import v8 from 'node:v8'
import vm from 'node:vm'

v8.setFlagsFromString('--expose-gc')
const collect = vm.runInNewContext('gc')
process.on('SIGUSR2', () => {
  collect()
  const { heapUsed } = process.memoryUsage()
  writeFileSync(join(process.env.KEPT_MEMORY_DIR, String(process.pid)), String(heapUsed))
})
