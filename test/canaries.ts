/**
 * The last step of `npm test`: searches all output of the run's services for the run's secrets. Output is logs, standard
 * error, command lines, answers and metrics. Secrets are master secrets, API keys, tokens and passwords of Redis.
 */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type NotedSecret,
  type NotedText,
  type Outlet,
  SECRET_KINDS,
  type SecretKind,
} from './harness/canaries.ts'

/** A whole run has many times as much; less means that the tests note nothing any more. */
const SECRETS_MIN = 500
const BYTES_MIN = 500_000
const OUTLETS: readonly Outlet[] = ['output', 'command line', 'answer', 'metrics']
/** The tests of a release note none. */
const ERROR_LINE: Outlet = 'error line'
const outlets = process.argv[2] === 'release' ? OUTLETS : [...OUTLETS, ERROR_LINE]

/** The secret part of an API key or a token: both end with 43 characters that are unique to them. */
const TAIL = /[\w-]{43}$/
/** Any 43 such characters, overlapping ones too, so that a tail is found wherever it stands in a longer word. */
const TAIL_AT = /(?=([\w-]{43}))/g

const dir = process.env.CANARY_DIR
assert.ok(dir !== undefined, 'CANARY_DIR: missing; expected the directory in which the tests noted secrets')

/** Secrets by their text: many are noted again and again. */
const seen = new Map<string, NotedSecret>()
const texts: NotedText[] = []
for (const file of readdirSync(dir)) {
  for (const line of readFileSync(join(dir, file), 'utf8').split('\n')) {
    if (line === '') continue
    const note = JSON.parse(line) as NotedSecret | NotedText
    if ('kind' in note) seen.set(note.text, note)
    else texts.push(note)
  }
}
const secrets = [...seen.values()]
const bytes = texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)

assert.ok(secrets.length >= SECRETS_MIN, `only ${secrets.length} secrets were noted; expected ${SECRETS_MIN}`)
assert.ok(bytes >= BYTES_MIN, `only ${bytes} bytes were noted; expected ${BYTES_MIN}`)
const noted = new Set<string>([...secrets.map(({ kind }) => kind), ...texts.map(({ outlet }) => outlet)])
for (const name of [...SECRET_KINDS, ...outlets]) assert.ok(noted.has(name), `no ${name} was noted`)

/** The search must find what is there: a secret of each kind is hidden in the longest text of each outlet. */
for (const outlet of outlets) {
  const ofOutlet = texts.filter(one => one.outlet === outlet).map(({ text }) => text)
  const text = ofOutlet.reduce((longest, next) => (next.length > longest.length ? next : longest))
  for (const kind of SECRET_KINDS) {
    const planted = secrets.find(secret => secret.kind === kind)!
    const middle = Math.floor(text.length / 2)
    const hidden = { outlet, text: `${text.slice(0, middle)} ${planted.text} ${text.slice(middle)}` }
    assert.ok(findLeaks([planted], [hidden]).length > 0, `a planted ${kind} was not found in the ${outlet}`)
  }
}

const leaks = findLeaks(secrets, texts)
for (const { kind, outlet, offset } of leaks.slice(0, 20))
  process.stderr.write(`${kind} in ${outlet}, at character ${offset}\n`)
assert.equal(leaks.length, 0, 'secrets were let out')
const searched = `${texts.length} texts of ${bytes} bytes that the services let out`
process.stdout.write(`Canaries: none of ${secrets.length} secrets is in ${searched}.\n`)

/** Where which kind of secret is; an API key or a token is found by its tail, others as they are, in JSON and in URLs. */
function findLeaks(secrets: readonly NotedSecret[], texts: readonly NotedText[]) {
  const tails = new Map<string, SecretKind>()
  const others = new Map<string, SecretKind>()
  for (const { kind, text } of secrets) {
    const tail = kind === 'api key' || kind === 'token' ? TAIL.exec(text)?.[0] : undefined
    if (tail !== undefined) tails.set(tail, kind)
    else
      for (const spelling of [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text)])
        others.set(spelling, kind)
  }
  return texts.flatMap(({ outlet, text }) => {
    const leak = (kind: SecretKind, offset: number) => ({ kind, outlet, offset })
    // All tails in one pass over the text, because there may be tens of thousands.
    const ofTails = [...text.matchAll(TAIL_AT)].flatMap(({ 1: tail, index }) => {
      const kind = tails.get(tail!)
      return kind === undefined ? [] : [leak(kind, index)]
    })
    const ofOthers = [...others].flatMap(([spelling, kind]) => {
      const at = text.indexOf(spelling)
      return at < 0 ? [] : [leak(kind, at)]
    })
    return [...ofTails, ...ofOthers]
  })
}
