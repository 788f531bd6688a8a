/** Runs a script by its hash, or by its text where the server does not know the hash. */

import { Command } from 'ioredis'
import type { Connection } from './connection.ts'
import type { Script } from './scripts.ts'

export function runScript(connection: Connection, script: Script, args: string[]): Promise<unknown> {
  return orByText(how =>
    connection.send(new Command(how, [how === 'evalsha' ? script.sha : script.text, ...args])),
  )
}

/** Calls EVALSHA, and EVAL if the server does not know the script. Then nothing ran yet, so nothing runs twice. */
export async function orByText(call: (how: 'evalsha' | 'eval') => Promise<unknown>): Promise<unknown> {
  try {
    return await call('evalsha')
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return await call('eval')
  }
}
