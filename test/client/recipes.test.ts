/**
 * The client's packed npm package on each runtime, and the recipes of client/recipes in their frameworks and languages, against a
 * running service. The recipe for Next.js is in page.test.ts.
 */

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { neighbour } from '../contract/support.ts'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { frameworkPath, installInto } from '../harness/packages.ts'
import { freePort } from '../harness/ports.ts'
import { UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'
import { startSurroundings } from '../harness/widget.ts'
import {
  codeIn,
  copyRecipe,
  type Recipe,
  recipeTests,
  sendForm,
  startServer,
  untilAnswered,
} from './recipe-tests.ts'

const run = promisify(execFile)
const CLIENT = new URL('../../client/', import.meta.url).pathname

/** The recipes are beside the installed package. */
const project = temporaryDir('client')

const packed = installInto(project, CLIENT, ['express', 'fastify', 'hono', '@hono'])
for (const name of readdirSync(join(packed, 'recipes')))
  if (name !== 'playwright.spec.js') copyRecipe(packed, name, join(project, name))
writeFileSync(join(project, 'package.json'), '{"type":"module"}')
const stage = await startSurroundings(UNLIMITED_REDEMPTIONS)
const { service, site, gateway } = stage
const { PATH, HOME } = process.env
const POWGATE_URL = `${gateway.origin()}//` // client and recipes drop slashes at the end
const env = { PATH, HOME, POWGATE_URL, POWGATE_API_KEY: site.apiKey }
const freshToken = (from: string) => new Client(service.url).token(site.siteKey, { from })

test('the package holds what it needs and nothing else, depends on nothing and imports nothing', () => {
  const all = readdirSync(packed, { recursive: true, encoding: 'utf8' })
  const files = all.filter(name => !name.includes('recipes'))
  const dist = ['powgate.d.ts', 'powgate.js', 'testing.d.ts', 'testing.js'].map(name => `dist/${name}`)
  assert.deepEqual(files.sort(), ['LICENSE', 'README.md', 'dist', ...dist, 'package.json'])
  const manifest = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8'))
  const found = Object.keys(manifest).filter(name => /dependencies/i.test(name))
  assert.deepEqual(found, [])
  const imports = dist.flatMap(name => [
    ...readFileSync(join(packed, name), 'utf8').matchAll(/from '([^']+)'/g),
  ])
  assert.deepEqual([...new Set(imports.map(([, from]) => from))], ['./powgate.js'])
})

/**
 * A module for all runtimes. It tells what the client makes of five calls: a good token, the same again, one whose first answer is
 * lost, a URL where nobody listens, and an aborted signal.
 */
const TRIAL = `
import { Powgate } from 'powgate-client'
export async function trial({ POWGATE_URL: url, POWGATE_API_KEY: apiKey, TOKENS, NOBODY }) {
  const [first, second] = TOKENS.split(' ')
  const gate = new Powgate({ url, apiKey, timeoutMs: 60000 })
  const seen = []
  for (const token of [first, first, second]) {
    const result = await gate.verify(token)
    seen.push(result.ok ? result.ip : result.code)
  }
  const thrown = error => seen.push(error.name)
  await new Powgate({ url: NOBODY, apiKey, timeoutMs: 60000, maxRetries: 0 }).verify('x').catch(thrown)
  await gate.verify('x', { signal: AbortSignal.abort(new RangeError('gone')) }).catch(thrown)
  return seen.join(' ')
}
`

const WORKER = `
import { trial } from './trial.js'
export default { fetch: async (_, env) => new Response(await trial(env)) }
`

function workerConfig(port: number, env: Record<string, string>): string {
  const bindings = ['POWGATE_URL', 'POWGATE_API_KEY', 'TOKENS', 'NOBODY'].map(
    name => `(name = "${name}", text = "${env[name]}")`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [
        (name = "worker.js", esModule = embed "worker.js"),
        (name = "trial.js", esModule = embed "trial.js"),
        (name = "powgate-client", esModule = embed "node_modules/powgate-client/dist/powgate.js"),
      ],
      compatibilityDate = "2026-01-01",
      bindings = [${bindings.join(', ')}],
    )),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`
}

describe('on each runtime', () => {
  async function assertTrial(trial: (env: Record<string, string>) => Promise<string>): Promise<void> {
    const ip = freshAddress()
    const TOKENS = `${await freshToken(ip)} ${await freshToken(ip)}`
    const NOBODY = `http://127.0.0.1:${await freePort()}`
    gateway.requests.length = 0
    // The first two calls pass unharmed, and the third loses its first answer.
    gateway.fail({ path: '/verify-token', times: 2 })
    gateway.fail({ path: '/verify-token', isAnswerLost: true })
    const seen = await trial({ ...env, TOKENS, NOBODY } as Record<string, string>)
    assert.equal(seen.trim(), `${ip} token-used ${ip} UnavailableError RangeError`)
    assert.equal(gateway.requests.length, 4, 'one for each of the first two calls, and two for the third')
  }
  const MAIN = `import { trial } from './trial.js'\nconsole.log(await trial(globalThis.process.env))\n`
  before(() => {
    writeFileSync(join(project, 'trial.js'), TRIAL)
    writeFileSync(join(project, 'main.js'), MAIN)
  })
  const isArm = process.arch === 'arm64'
  const RUNTIMES: Record<string, readonly string[]> = {
    'this Node.js': [process.execPath],
    'Node.js 18': [frameworkPath(`node-linux-${process.arch}/bin/node`)],
    Deno: [
      frameworkPath(`@deno/linux-${process.arch}-glibc/deno`),
      ...words('run -A --node-modules-dir=manual'),
    ],
    Bun: [frameworkPath(`@oven/bun-linux-${isArm ? 'aarch64' : 'x64'}/bin/bun`)],
  }
  for (const [name, [program, ...args]] of Object.entries(RUNTIMES)) {
    test(name, () =>
      assertTrial(async env => (await run(program!, [...args, 'main.js'], { cwd: project, env })).stdout),
    )
  }

  test('workers (workerd)', () =>
    assertTrial(async env => {
      const port = await freePort()
      writeFileSync(join(project, 'worker.js'), WORKER)
      writeFileSync(join(project, 'worker.capnp'), workerConfig(port, env))
      const program = frameworkPath(`@cloudflare/workerd-linux-${isArm ? 'arm64' : '64'}/bin/workerd`)
      const child = spawn(program, ['serve', 'worker.capnp'], { cwd: project, env, stdio: 'inherit' })
      const { text } = await untilAnswered(`http://127.0.0.1:${port}/`).finally(() => child.kill())
      return text
    }))
})

/** A framework's server, started at the first form. */
function server(file: string, isJson = false): Recipe {
  const start = async (): Promise<string> => {
    const port = String(await freePort())
    const origin = `http://127.0.0.1:${port}`
    await startServer(origin, [file], { cwd: project, env: { ...env, PORT: port } })
    return origin
  }
  let origin: Promise<string> | undefined
  return async (token, ip) => sendForm(`${await (origin ??= start())}/contact`, token, ip, isJson)
}

recipeTests('Express', server('express.js'), stage)
recipeTests('Hono', server('hono.js'), stage)
recipeTests('Fastify', server('fastify.js', true), stage)

/** A program that prints `ok`, a code or words for the visitor, and ends with an error where there is no verdict. */
function programTests(name: string, command: string, ...args: readonly string[]): void {
  const ended = async (token: string, ip: string, env: NodeJS.ProcessEnv) => {
    try {
      const { stdout } = await run(command, [...args, token, ip], { cwd: project, env })
      return { word: codeIn(stdout.trim()), why: '' }
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      // Python's trace quotes the line that raises, with its texts in quotation marks; the reason itself comes last.
      const reasons = /(?<!")(POWGATE_\w+ (?:is not set|does not .+?http)|status \d+, .+|no answer: .+)/g
      const why = (stderr + stdout).match(reasons)?.at(-1)
      assert.ok(why !== undefined, `says nothing of why: ${stderr}${stdout}`)
      return { word: undefined, why }
    }
  }
  recipeTests(name, async (...form) => (await ended(...form, env)).word, stage)

  test(`${name} tells a wrong key, no key, no URL, a wrong one and an outage apart`, async () => {
    const whyOf = async (changes: NodeJS.ProcessEnv) =>
      (await ended('x', freshAddress(), { ...env, ...changes })).why
    const wrong = site.apiKey.slice(0, -1) + neighbour(site.apiKey.at(-1)!)
    // Many files of secrets end with a newline, which recipes drop.
    assert.match(await whyOf({ POWGATE_API_KEY: `${wrong}\n` }), /^status 401, .*invalid-credentials/)
    for (const setting of ['POWGATE_API_KEY', 'POWGATE_URL'])
      for (const value of ['\n', undefined])
        assert.equal(await whyOf({ [setting]: value }), `${setting} is not set`)
    assert.equal(await whyOf({ POWGATE_URL: 'powgate:8080' }), 'POWGATE_URL does not begin with http')
    assert.match(await whyOf({ POWGATE_URL: `${gateway.origin()}/a-path\n` }), /^status 404, .*not-found/)
    const nobody = `http://127.0.0.1:${await freePort()}`
    assert.match(await whyOf({ POWGATE_URL: nobody }), /^no answer: .*refused/i)
  })
}
programTests('Python', 'python3', 'powgate.py')
programTests('PHP', 'php', 'powgate.php')
programTests('Ruby', 'ruby', 'powgate.rb')
/** The recipe for Go is a function, so this makes a program of it. */
const GO_MAIN = `package main
import ("fmt"; "os")
func main() {
  code, err := verify(os.Args[1], os.Args[2])
  if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
  if code == "" { fmt.Println("ok") } else { fmt.Println(words(code)) }
}
`
describe('Go', () => {
  before(() => {
    writeFileSync(join(project, 'main.go'), GO_MAIN)
    const withoutModule = { ...env, GO111MODULE: 'off' }
    const args = ['build', '-o', 'powgate-go', 'powgate.go', 'main.go']
    return run('go', args, { cwd: project, env: withoutModule })
  })
  programTests('compiled', './powgate-go')
})
