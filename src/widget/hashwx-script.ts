/** Entry of what a worker of HashWX loads where it may not compile WebAssembly. */

import * as exports from '#hashwx-script'

Object.assign(globalThis, { powgateHashwx: exports })
