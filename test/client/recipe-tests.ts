/** What every recipe of client/recipes must do, whatever it is written in. */

import assert from 'node:assert/strict'
import { type SpawnOptions, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Client } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import { endProcess, leftovers } from '../harness/processes.ts'
import type { Stage } from '../harness/widget.ts'

const KEY = 'apiKey: process.env.POWGATE_API_KEY'
const PATIENT_JS = [KEY, `${KEY}, timeoutMs: 30_000`] as const
/** What to replace in each recipe that redeems: it gives up after a second or two, and a busy machine may take longer. */
const PATIENT: Readonly<Record<string, readonly [short: string, long: string]>> = {
  'express.js': PATIENT_JS,
  'fastify.js': PATIENT_JS,
  'hono.js': PATIENT_JS,
  'next-route.js': PATIENT_JS,
  'powgate.go': ['Timeout: time.Second', 'Timeout: 30 * time.Second'],
  'powgate.php': ["'timeout' => 1", "'timeout' => 30"],
  'powgate.py': ['TIMEOUT_SECONDS = 2, 1', 'TIMEOUT_SECONDS = 2, 30'],
  'powgate.rb': ['open_timeout: 1, read_timeout: 1', 'open_timeout: 30, read_timeout: 30'],
}

/** @param packed where the client's package is */
export function copyRecipe(packed: string, name: string, target: string): void {
  const text = readFileSync(join(packed, 'recipes', name), 'utf8')
  assert.ok(PATIENT[name] !== undefined, `${name} is not in PATIENT`)
  const [short, long] = PATIENT[name]
  assert.ok(text.includes(short), `${name} has no ${short}`)
  writeFileSync(target, text.replace(short, long))
}

/**
 * What a recipe makes of a token that the visitor at `ip` sends: `ok`, the error code of `/verify-token`, words for the
 * visitor, or undefined for no verdict. Where the token is empty, the form does not have the field.
 */
export type Recipe = (token: string, ip: string) => Promise<string | undefined>

export function recipeTests(
  name: string,
  recipe: Recipe,
  { service, site, gateway }: Pick<Stage, 'service' | 'site' | 'gateway'>,
): void {
  const freshToken = (from: string) => new Client(service.url).token(site.siteKey, { from })
  describe(name, () => {
    test('a good token passes once, also if the first answer is lost', async () => {
      const ip = freshAddress()
      const token = await freshToken(ip)
      gateway.fail({ path: '/verify-token', isAnswerLost: true })
      assert.equal(await recipe(token, ip), 'ok')
      assert.equal(await recipe(token, ip), 'token-used')
    })

    test("another's token, and what is none, are refused", async () => {
      const ip = freshAddress()
      assert.equal(await recipe(await freshToken(freshAddress()), ip), 'ip-mismatch')
      assert.equal(await recipe('x', ip), 'invalid-token')
      assert.match((await recipe('x'.repeat(10_000), ip))!, /^(invalid-body|body-too-large)$/)
    })

    test('a form without a token: its visitor is told what to do', async () => {
      const told = await recipe('', freshAddress())
      assert.match(told!, /^We could not check .* allow JavaScript, wait for .* send the form again\.$/)
    })

    test('no verdict is no pass: a limit, an outage, an answer that is none', async () => {
      const ip = freshAddress()
      const token = await freshToken(ip)
      const pass = { success: true, score: 1, ip, solvedAt: 1 }
      // None of these is tried again: a second request would redeem the token.
      for (const answer of [
        { status: 429, headers: { 'Retry-After': '60' }, body: pass },
        { status: 500, body: pass },
        { status: 204 },
        { status: 302, headers: { Location: `${gateway.origin()}/elsewhere` }, body: pass },
      ]) {
        gateway.fail({ path: '/verify-token', answer })
        assert.equal(await recipe(token, ip), undefined, String(answer.status))
      }
      assert.ok(!gateway.requests.some(asked => asked.includes('elsewhere')), 'the key went elsewhere')
      // These may be tried again, so all of the three attempts of a recipe meet them.
      gateway.fail({ path: '/verify-token', times: 3, isDropped: true })
      assert.equal(await recipe(token, ip), undefined, 'dropped')
      const cut = { status: 503, headers: { 'Content-Length': '1000' }, body: pass }
      gateway.fail({ path: '/verify-token', times: 3, answer: cut })
      assert.equal(await recipe(token, ip), undefined, 'cut')
      gateway.fail({ path: '/verify-token', times: 3, answer: { status: 200, body: '<html>' } })
      assert.equal(await recipe(token, ip), undefined, 'a page')
      gateway.recover()
    })
  })
}

/** Starts a framework's server, which ends with the test file, and waits for its first answer. */
export async function startServer(
  origin: string,
  args: readonly string[],
  options: SpawnOptions,
): Promise<void> {
  const child = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'ignore', 'inherit'] })
  leftovers.add({ stop: () => endProcess(child, 'SIGKILL') })
  await untilAnswered(origin)
}

/** @returns the first answer of a server that is starting */
export function untilAnswered(url: string): Promise<Answer> {
  return eventually(PATIENCE_MS, `${url} answers`, () => call(url).catch(() => undefined))
}

/** Sends a form to a framework's server: 200 is a pass, 403 names the code or has words for the visitor, 503 is no verdict. */
export async function sendForm(url: string, token: string, ip: string, isJson = false) {
  const fields: Record<string, string> = token === '' ? { name: 'Ada' } : { 'powgate-token': token }
  const body = isJson ? JSON.stringify(fields) : `${new URLSearchParams(fields)}`
  const headers = { 'Content-Type': `application/${isJson ? 'json' : 'x-www-form-urlencoded'}` }
  const { status, text } = await call(url, { method: 'POST', headers, body, from: ip })
  if (status === 200 && text === 'thank you') return 'ok'
  if (status === 403) return codeIn(text)
  assert.equal(status, 503, text)
  return undefined
}

/** @returns the code in the sentence in which all recipes tell it; or the text, if that is another */
export function codeIn(text: string): string {
  const told = /^We could not check that you are a person \(([\w-]+)\)\. Please send the form again\.$/.exec(
    text,
  )
  return told?.[1] ?? text
}
