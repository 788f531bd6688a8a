/** The client's packed npm package on each runtime, and the recipes of client/recipes, against a running service. */

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { neighbour } from '../contract/support.ts'
import { FaultyProxy } from '../harness/browser-proxy.ts'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { call, freshAddress } from '../harness/http.ts'
import { installInto, TURBOPACK } from '../harness/packages.ts'
import { freePort } from '../harness/ports.ts'
import { EASY, TestService, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'

const run = promisify(execFile)
const CLIENT = new URL('../../client/', import.meta.url).pathname
const PEERS = new URL('.', import.meta.url).pathname
const START_MS = 60_000

/** The recipes are beside the installed package. */
const project = temporaryDir('client')

const KEY = 'apiKey: process.env.POWGATE_API_KEY'
const PATIENT_JS = [KEY, `${KEY}, timeoutMs: 30_000`] as const
/** What to replace in each recipe: it gives up after a second or two, and a busy machine may take longer. */
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

const names = ['express', 'fastify', 'hono', '@hono', 'next', 'react', 'react-dom']
const packed = installInto(project, CLIENT, PEERS, names)
cpSync(join(packed, 'recipes'), project, { recursive: true })
for (const [name, [short, long]] of Object.entries(PATIENT)) {
  const text = readFileSync(join(project, name), 'utf8')
  assert.ok(text.includes(short), `${name} has no ${short}`)
  writeFileSync(join(project, name), text.replace(short, long))
}
writeFileSync(join(project, 'package.json'), '{"type":"module"}')
const settings = { POWGATE_TRUSTED_PROXIES: '127.0.0.0/8', ...UNLIMITED_REDEMPTIONS }
const service = await TestService.start('embedded', settings)
const site = await service.createSite({ difficulty: EASY })
/** What lies between a recipe and the service. */
const network = await FaultyProxy.start(service.port)
const { PATH, HOME } = process.env
const forTools = { GO111MODULE: 'off', NEXT_TELEMETRY_DISABLED: '1' }
const env = { PATH, HOME, ...forTools, POWGATE_URL: `${network.origin()}//`, POWGATE_API_KEY: site.apiKey }
const freshToken = (from: string) => new Client(service.url).token(site.siteKey, { from })

test('the package holds what it needs and nothing else, depends on nothing and imports nothing', () => {
  const files = readdirSync(packed, { recursive: true, encoding: 'utf8' }).filter(
    name => !name.includes('recipes'),
  )
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

/** Says what the client makes of a good token, the same again, a lost answer, a URL where nobody listens, and an aborted signal. */
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
    network.requests.length = 0
    // The first two calls pass unharmed, and the third loses its first answer.
    network.fail({ path: '/verify-token', times: 2, delayMs: 0 })
    network.fail({ path: '/verify-token', isAnswerLost: true })
    const seen = await trial({ ...env, TOKENS, NOBODY } as Record<string, string>)
    assert.equal(seen.trim(), `${ip} token-used ${ip} UnavailableError RangeError`)
    assert.equal(network.requests.length, 4)
  }
  const MAIN = `import { trial } from './trial.js'\nconsole.log(await trial(globalThis.process.env))\n`
  before(() => {
    writeFileSync(join(project, 'trial.js'), TRIAL)
    writeFileSync(join(project, 'main.js'), MAIN)
  })
  const binary = (path: string) => join(PEERS, 'node_modules', path)
  const isArm = process.arch === 'arm64'
  const RUNTIMES: Record<string, readonly string[]> = {
    'this Node.js': [process.execPath],
    'Node.js 18': [binary(`node-linux-${process.arch}/bin/node`)],
    Deno: [
      binary(`@deno/linux-${process.arch}-glibc/deno`),
      ...words('run --allow-all --node-modules-dir=manual'),
    ],
    Bun: [binary(`@oven/bun-linux-${isArm ? 'aarch64' : 'x64'}/bin/bun`)],
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
      const program = binary(`@cloudflare/workerd-linux-${isArm ? 'arm64' : '64'}/bin/workerd`)
      const child = spawn(program, ['serve', 'worker.capnp'], { cwd: project, env, stdio: 'inherit' })
      try {
        return await ask(`http://127.0.0.1:${port}/`)
      } finally {
        child.kill()
      }
    }))
})

/** The first answer of a server that is starting. */
async function ask(url: string): Promise<string> {
  return (await eventually(START_MS, `${url} answers`, () => call(url).catch(() => undefined))).text
}

/**
 * What a recipe makes of a token that the visitor at `ip` sends: `ok`, a code, words for the visitor, or undefined for no
 * verdict. Where the token is empty, the form does not have the field.
 */
type Recipe = (token: string, ip: string) => Promise<string | undefined>

function recipeTests(name: string, recipe: Recipe): void {
  describe(name, () => {
    test('a good token passes once, also if the first answer is lost', async () => {
      const ip = freshAddress()
      const token = await freshToken(ip)
      network.fail({ path: '/verify-token', isAnswerLost: true })
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
      for (const answer of [
        { status: 429, headers: { 'Retry-After': '60' }, body: pass },
        { status: 500, body: pass },
        { status: 204 },
        { status: 302, headers: { Location: `${network.origin()}/elsewhere` }, body: pass },
      ]) {
        network.fail({ path: '/verify-token', answer })
        assert.equal(await recipe(token, ip), undefined, String(answer.status))
      }
      assert.ok(!network.requests.some(asked => asked.includes('elsewhere')), 'the key went elsewhere')
      network.fail({ path: '/verify-token', times: 3, isDropped: true })
      assert.equal(await recipe(token, ip), undefined, 'dropped')
      const cut = { status: 503, headers: { 'Content-Length': '1000' }, body: pass }
      network.fail({ path: '/verify-token', times: 3, answer: cut })
      assert.equal(await recipe(token, ip), undefined, 'cut')
      network.fail({ path: '/verify-token', times: 3, answer: { status: 200, body: '<html>' } })
      assert.equal(await recipe(token, ip), undefined, 'a page')
      network.recover()
    })
  })
}

/** A framework's server, started at the first form. 200 is a pass, 403 names the code or has words for the visitor, 503 is no verdict. */
function server(args: string, contentType: string, encode: (token: string) => string): Recipe {
  let child: ChildProcess | undefined
  let url = ''
  after(async () => {
    child?.kill()
    if (child !== undefined) await once(child, 'exit')
  })
  return async (token, ip) => {
    if (child === undefined) {
      const port = String(await freePort())
      url = `http://127.0.0.1:${port}`
      child = spawn(process.execPath, args.split(' '), {
        cwd: project,
        env: { ...env, PORT: port },
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      await ask(`${url}/`)
    }
    const headers = { 'Content-Type': contentType }
    const { status, text } = await call(`${url}/contact`, {
      method: 'POST',
      headers,
      body: encode(token),
      from: ip,
    })
    if (status === 200 && text === 'thank you') return 'ok'
    if (status === 403) return text.replace(/^.* person \(([\w-]+)\)\. Please send .*$/, '$1')
    assert.equal(status, 503, text)
    return undefined
  }
}

const fields = (token: string): Record<string, string> =>
  token === '' ? { name: 'Ada' } : { 'powgate-token': token }
const urlencoded = (token: string) => `${new URLSearchParams(fields(token))}`
const FORM = 'application/x-www-form-urlencoded'
recipeTests('Express', server('express.js', FORM, urlencoded))
recipeTests('Hono', server('hono.js', FORM, urlencoded))
recipeTests(
  'Fastify',
  server('fastify.js', 'application/json', token => JSON.stringify(fields(token))),
)

const NEXT = 'node_modules/next/dist/bin/next'
describe('Next.js route handler', () => {
  before(async () => {
    mkdirSync(join(project, 'shop/app/contact'), { recursive: true })
    cpSync(join(project, 'next-route.js'), join(project, 'shop/app/contact/route.js'))
    writeFileSync(join(project, 'shop/next.config.js'), TURBOPACK)
    // Sites are built where the key is not known.
    const keyless = { ...env, POWGATE_URL: undefined, POWGATE_API_KEY: undefined }
    await run(process.execPath, [NEXT, 'build', 'shop'], { cwd: project, env: keyless })
  })
  recipeTests('built and started', server(`${NEXT} start shop -H 127.0.0.1`, FORM, urlencoded))
})

/** A program that prints `ok`, a code or words for the visitor, and ends with an error where there is no verdict. */
function programTests(name: string, command: string, ...args: readonly string[]): void {
  const ended = async (token: string, ip: string, env: NodeJS.ProcessEnv) => {
    try {
      const { stdout } = await run(command, [...args, token, ip], { cwd: project, env })
      return { word: stdout.trim().replace(/^.* person \(([\w-]+)\)\. Please send .*$/, '$1'), why: '' }
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      // A trace may quote the line that raises, with its texts in quotation marks; the reason itself comes last.
      const reasons = /(?<!")(POWGATE_\w+ (?:is not set|does not .+?http)|status \d+, .+|no answer: .+)/g
      const why = (stderr + stdout).match(reasons)?.at(-1)
      assert.ok(why !== undefined, `says nothing of why: ${stderr}${stdout}`)
      return { word: undefined, why }
    }
  }
  recipeTests(name, async (...form) => (await ended(...form, env)).word)

  test(`${name} tells a wrong key, no key, no URL, a wrong one and an outage apart`, async () => {
    const whyOf = async (changes: NodeJS.ProcessEnv) =>
      (await ended('x', freshAddress(), { ...env, ...changes })).why
    const wrong = site.apiKey.slice(0, -1) + neighbour(site.apiKey.at(-1)!)
    assert.match(await whyOf({ POWGATE_API_KEY: `${wrong}\n` }), /^status 401, .*invalid-credentials/)
    for (const setting of ['POWGATE_API_KEY', 'POWGATE_URL'])
      for (const value of ['\n', undefined])
        assert.equal(await whyOf({ [setting]: value }), `${setting} is not set`)
    assert.equal(await whyOf({ POWGATE_URL: 'powgate:8080' }), 'POWGATE_URL does not begin with http')
    assert.match(await whyOf({ POWGATE_URL: `${network.origin()}/a-path\n` }), /^status 404, .*not-found/)
    const nobody = `http://127.0.0.1:${await freePort()}`
    assert.match(await whyOf({ POWGATE_URL: nobody }), /^no answer: .*refused/i)
  })
}
programTests('Python', 'python3', 'powgate.py')
programTests('PHP', 'php', 'powgate.php')
programTests('Ruby', 'ruby', 'powgate.rb')
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
    return run('go', ['build', '-o', 'powgate-go', 'powgate.go', 'main.go'], { cwd: project, env })
  })
  programTests('compiled', './powgate-go')
})
