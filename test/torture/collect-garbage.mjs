/**
 * Loaded into each process of a service before anything else: SIGUSR2 has it collect all of its garbage and write how many bytes
 * its JavaScript heap keeps to a file by its process id. See kept-memory.ts.
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
