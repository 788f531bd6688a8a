/** The scripts: Lua files, read and joined once at start. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export interface Script {
  readonly text: string
  /** SHA-1 of the text, for EVALSHA. */
  readonly sha: string
}

function load(...files: string[]): Script {
  const text = files
    .map(file => readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8'))
    .join('\n')
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** All request operations of one event-loop turn on one shard. */
export const TURN = load(
  'time',
  'clock',
  'windows',
  'address-log',
  'answers',
  'admit-challenge-1',
  'admit-solution-2',
  'redeem-token-3',
  'refund-caller-1',
  'peek-api-key-1',
  'probe-1',
  'turn',
)
export const WRITE_RECORDS = load('write-records-n')
export const NOTE_USES = load('note-uses-1')
export const ADD_VOTES = load('time', 'add-votes-1')
export const EXCHANGE_LOAD = load('time', 'exchange-load-n')
export const EXCHANGE_NETWORKS = load('time', 'exchange-networks-1')

/**
 * Calls EVALSHA, and EVAL if the server does not know the script. Then nothing ran yet, so nothing runs twice.
 *
 * @param call gets the name of the command and its first argument
 */
export async function orByText(
  { sha, text }: Script,
  call: (how: string, code: string) => Promise<unknown>,
): Promise<unknown> {
  try {
    return await call('evalsha', sha)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return await call('eval', text)
  }
}
