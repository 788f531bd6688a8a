/**
 * Loaded first into each process of a service. On SIGUSR2 the process collects all garbage. Then it writes the bytes that its
 * JavaScript heap keeps to a file named by its process id. See memory.ts.
 */

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
