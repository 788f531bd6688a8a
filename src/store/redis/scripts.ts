/** The Lua files, joined at start, and the numbers that they share with domain/. An operation's file ends in its number of keys. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ACCEPTED_MINUTES, ACCEPTED_MS, MARKS_LIMIT_MAX } from '../../domain/address-log.ts'
import { COUNT_MAX, EXACT_LIMIT_MAX, HALF_WRAP, WINDOW_MS, WRAP_MASK } from '../../domain/limits.ts'
import { DAY_MS, KEPT_MS_A_PROOF, KEPT_MS_MAX, MINUTE_MS } from '../../domain/meters.ts'
import { POLICY } from '../../domain/policy.ts'

export interface Script {
  readonly text: string
  readonly sha: string
}

/** @param head before the files */
function load(head: string, ...files: string[]): Script {
  const texts = files.map(file => readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8'))
  const text = withLiterals([head, ...texts].join('\n'))
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/**
 * Writes each `local NAME = <number or text>` where it is used, in all files of a script. Each function captures the locals that
 * it uses, anew in each call: with numbers among them, a call with one operation took an eighth more instructions. (Also inside
 * texts, so no such local may have the name of a command or an option.)
 */
function withLiterals(text: string): string {
  const literals = new Map<string, string>()
  const rest = text.replace(
    /^local ([A-Z][A-Z0-9_]*) = ([\d.]+|'[^']*')(?: +--.*)?$/gm,
    (_, name: string, value: string) => {
      if (literals.has(name)) throw new Error(`two files have a local ${name}`)
      literals.set(name, value)
      return ''
    },
  )
  return rest.replace(/\b[A-Z][A-Z0-9_]*\b/g, name => literals.get(name) ?? name)
}

/** As Lua locals: `networkRecentMs` is NETWORK_RECENT_MS. */
function numbers(): string {
  const { v4, v6, ...policy } = POLICY
  const log = { WINDOW_MS, HALF_WRAP, EXACT_LIMIT_MAX, COUNT_MAX, ACCEPTED_MS, MARKS_LIMIT_MAX }
  const meters = { WRAP: WRAP_MASK + 1, ACCEPTED_MINUTES, MINUTE_MS, DAY_MS, KEPT_MS_A_PROOF, KEPT_MS_MAX }
  const lineOf = ([name, value]: [string, unknown]) =>
    `local ${/^[A-Z]/.test(name) ? name : name.replace(/[A-Z]/g, '_$&').toUpperCase()} = ${value}`
  return Object.entries({ ...log, ...policy, ...meters })
    .map(lineOf)
    .join('\n')
}

const START = ['time', 'clock', 'epoch']
const VISITS = ['address-log', 'meters', 'admit-challenge-1', 'admit-solution-2', 'take-back-0']
const REDEMPTIONS = ['windows', 'redeem-token-3', 'refund-caller-1', 'peek-api-key-1']
const END = ['probe-1', 'turn']

/**
 * By the operations of a turn. Redis makes all functions of a script anew in each call: without those that a turn does not need,
 * a challenge alone takes 11 % fewer instructions, a redemption 15 %.
 */
export const TURNS = {
  visits: load(numbers(), ...START, ...VISITS, ...END),
  redemptions: load(numbers(), ...START, ...REDEMPTIONS, ...END),
  both: load(numbers(), ...START, ...VISITS, ...REDEMPTIONS, ...END),
}
export const WRITE_RECORDS = load('', 'write-records-n')
export const NOTE_USES = load('', 'note-uses-1')
export const NOTE_HOST = load('', 'time', 'note-host-2')

/** EVALSHA; then EVAL if the server does not know the script, so nothing ran. */
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
