/** Scripts by their hash, and by their text where the server does not know them. */

import { Command } from 'ioredis'
import type { Connection } from './connection.ts'
import type { Script } from './scripts.ts'

export function runScript(connection: Connection, script: Script, args: string[]): Promise<unknown> {
  return orByText(how =>
    connection.send(new Command(how, [how === 'evalsha' ? script.sha : script.text, ...args])),
  )
}

/** EVALSHA, and EVAL where the server does not know the script: then nothing ran, so that is no resend. */
export async function orByText(call: (how: 'evalsha' | 'eval') => Promise<unknown>): Promise<unknown> {
  try {
    return await call('evalsha')
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return await call('eval')
  }
}
