/** Runs the command line: each call as a process of its own, or calls one after the other in one process. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { noteSecret, noteText } from '../harness/canaries.ts'
import { leftovers, OrderProcess } from '../harness/processes.ts'
import { RedisServer } from '../harness/redis.ts'
import type { StoreKind } from '../harness/service.ts'
import type { Call, Ended } from './command-host.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const HOST = fileURLToPath(new URL('command-host.ts', import.meta.url))

export interface Run extends Ended {
  /** The lines of `err`. */
  readonly problems: readonly string[]
}

export type Environment = Readonly<Record<string, string>>

export class Powgate {
  readonly #env: Environment
  readonly #isAlone: boolean

  /** @param env all that a call sees besides PATH and HOME. If `isAlone`, a call is a process of its own, which takes ten times as long */
  constructor(env: Environment, { isAlone = false } = {}) {
    this.#env = env
    this.#isAlone = isAlone
  }

  with(env: Environment): Powgate {
    return new Powgate({ ...this.#env, ...env }, { isAlone: this.#isAlone })
  }

  /** @param call words between spaces; each of `args` stands for itself */
  async run(call = '', ...args: readonly string[]): Promise<Run> {
    if (this.#isAlone) return runProgram(process.execPath, commandOf(call, args), this.#env)
    return runInHost({ args: wordsOf(call, args), env: this.#env })
  }

  /** The same as a process of its own, with this text on standard input, as through a pipe. */
  runWithInput(input: string, call: string, ...args: readonly string[]): Promise<Run> {
    return runProgram(process.execPath, commandOf(call, args), this.#env, input)
  }

  /** The same as a process of its own, with a terminal as stderr and stdout, both of which end up in `out`. */
  runOnTerminal(call: string, ...args: readonly string[]): Promise<Run> {
    const command = [process.execPath, ...commandOf(call, args)].map(word => `'${word}'`).join(' ')
    return runProgram('script', ['-qec', command, '/dev/null'], this.#env)
  }

  /** What a run that must succeed prints. */
  async text(call: string, ...args: readonly string[]): Promise<string> {
    const { code, err, out } = await this.run(call, ...args)
    assert.deepEqual({ code, err }, { code: 0, err: '' }, [call, ...args].join(' '))
    return out
  }

  /** The one JSON value, on one line, that a run that must succeed prints. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was printed
  async json(call: string, ...args: readonly string[]): Promise<any> {
    const text = await this.text(call, ...args, '--json')
    assert.match(text, /^[^\n]+\n$/)
    return JSON.parse(text)
  }

  /** The one line that a run that must fail prints, on stderr only. */
  async problem(code: 1 | 2, call: string, ...args: readonly string[]): Promise<string> {
    const run = await this.run(call, ...args)
    const about = `${[call, ...args].join(' ')}: ${run.err}`
    assert.equal(run.code, code, about)
    assert.equal(run.out, '', about)
    assert.equal(run.problems.length, 1, about)
    return run.problems[0]!
  }
}

const commandOf = (call: string, args: readonly string[]) => ['dist/cli/main.js', ...wordsOf(call, args)]

const wordsOf = (call: string, args: readonly string[]): string[] => [
  ...call.split(' ').filter(word => word !== ''),
  ...args,
]

/** Writes a file, for commands to read. @returns its path */
export function written(path: string, content: string | Buffer): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return path
}

/** A store of this kind until the tests end: settings that name it, and where it is, as commands tell it. */
export async function storeOf(kind: StoreKind, dataDir: string) {
  if (kind === 'embedded')
    return { env: { POWGATE_DATA_DIR: dataDir } as Record<string, string>, place: dataDir }
  const { port, url } = await RedisServer.start()
  return { env: { REDIS_URL: url }, place: `Redis at 127.0.0.1:${port} (database 0, prefix pg)` }
}

/** The process that runs all calls of a test file that are not alone, one after the other. */
let host: OrderProcess<Call> | undefined
let lastCall: Promise<unknown> = Promise.resolve()

function runInHost(call: Call): Promise<Run> {
  if (host === undefined) {
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const
    host = new OrderProcess(HOST, [], { cwd: ROOT, execArgv: ['--import', 'tsx'], stdio: [...stdio] })
    leftovers.add(host)
  }
  const ended = lastCall.then(() => host!.ask<Ended>(call))
  lastCall = ended.catch(() => {})
  return ended.then(({ code, out, err }) => runOf(code, out, err))
}

async function runProgram(program: string, args: readonly string[], env: Environment, input?: string) {
  const { PATH, HOME } = process.env
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH, HOME, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    timeout: 90_000, // one that has not ended by then never will: a connection or a thread was left open
    killSignal: 'SIGKILL',
  })
  child.stdin?.on('error', () => {}) // it may end without reading
  child.stdin?.end(input)
  const printed = [text(child.stdout!), text(child.stderr!)] as const
  const [[code], out, err] = await Promise.all([once(child, 'close'), ...printed])
  return runOf(code, out, err)
}

function runOf(code: number | null, out: string, err: string): Run {
  assert.ok(err === '' || err.endsWith('\n'), `a whole line: ${err}`)
  for (const [apiKey] of out.matchAll(/sk_\w{8}_[\w-]{43}/g)) noteSecret('api key', apiKey)
  noteText('error line', err)
  return { code, out, err, problems: err.split('\n').slice(0, -1) }
}
