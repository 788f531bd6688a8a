/** Entry of what a worker of HashWX (worker.ts, which reads the global) loads where it may not compile WebAssembly. */

import * as exports from '#hashwx-script'

Object.assign(globalThis, { powgateHashwx: exports })
