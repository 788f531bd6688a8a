/**
 * HashWX, the second puzzle (docs/howto/which-puzzle.md), in plain JavaScript: `npm run build:hashwx` makes it by wasm2js. A worker
 * loads this script where the page's policy forbids WebAssembly, or hashwx.wasm did not load, and reads the global (worker.ts).
 */

import * as exports from '#hashwx-script'

Object.assign(globalThis, { powgateHashwx: exports })
