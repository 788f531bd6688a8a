/** `npm run bench...`: finds the bench that is named and runs it. */

import { runTool, tell } from '../test/harness/command-line.ts'

/** Loaded one at a time: some need a browser or a database. */
const BENCHES = {
  micro: async () => (await import('./micro/main.ts')).MICRO,
  http: async () => (await import('./http/main.ts')).HTTP,
  store: async () => (await import('./store/main.ts')).STORE,
  solver: async () => (await import('./solver/main.ts')).SOLVER,
  compare: async () => (await import('./compare/main.ts')).COMPARE,
  peers: async () => (await import('./peers/main.ts')).PEERS,
  effect: async () => (await import('./simulator/main.ts')).EFFECT,
}

const [name, ...args] = process.argv.slice(2)
const load = Object.entries(BENCHES).find(([known]) => known === name)?.[1]
if (load === undefined) {
  tell(`expected one of ${Object.keys(BENCHES).join(', ')}, got ${name ?? 'nothing'}`)
  process.exitCode = 2
} else await runTool(await load(), args)
