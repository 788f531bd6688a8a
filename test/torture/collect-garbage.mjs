/** Loaded into each process of a service before anything else: SIGUSR2 has it collect all of its garbage. */

import v8 from 'node:v8'
import vm from 'node:vm'

v8.setFlagsFromString('--expose-gc')
const collect = vm.runInNewContext('gc')
process.on('SIGUSR2', () => collect())
