/** Runs the command line as a process of its own, from the source or from the build. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { noteSecret, noteText } from '../harness/canaries.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Starts in a third of the time that the source takes. */
const FROM_BUILD = ['dist/cli/main.js']
const FROM_SOURCE = ['--import', 'tsx', 'src/cli/main.ts']

/** A process that has not ended by then never will: a connection or a thread was left open. */
const HANGS_AFTER_MS = 90_000

export interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** The lines on stderr. */
  readonly problems: readonly string[]
}

export type Environment = Readonly<Record<string, string>>

export interface PowgateOptions {
  readonly isFromSource?: boolean
}

export class Powgate {
  readonly #env: Environment
  readonly #program: readonly string[]

  /** @param env all that the process sees besides PATH and HOME */
  constructor(env: Environment, { isFromSource = false }: PowgateOptions = {}) {
    this.#env = env
    this.#program = isFromSource ? FROM_SOURCE : FROM_BUILD
  }

  with(env: Environment): Powgate {
    return new Powgate({ ...this.#env, ...env }, { isFromSource: this.#program === FROM_SOURCE })
  }

  /** @param call words between spaces; each of `args` stands for itself */
  run(call = '', ...args: readonly string[]): Promise<Run> {
    return runProgram(process.execPath, this.#words(call, args), this.#env)
  }

  /** The same with this text on standard input, as through a pipe. */
  runWithInput(input: string, call: string, ...args: readonly string[]): Promise<Run> {
    return runProgram(process.execPath, this.#words(call, args), this.#env, input)
  }

  /** The same with a terminal as stderr and stdout, both of which end up in `out`. */
  runOnTerminal(call: string, ...args: readonly string[]): Promise<Run> {
    const command = [process.execPath, ...this.#words(call, args)].map(word => `'${word}'`).join(' ')
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

  #words(call: string, args: readonly string[]): string[] {
    return [...this.#program, ...call.split(' ').filter(word => word !== ''), ...args]
  }
}

async function runProgram(
  program: string,
  args: readonly string[],
  env: Environment,
  input?: string,
): Promise<Run> {
  const { PATH, HOME } = process.env
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH, HOME, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    timeout: HANGS_AFTER_MS,
    killSignal: 'SIGKILL',
  })
  child.stdin?.on('error', () => {}) // it may end without reading
  child.stdin?.end(input)
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout!.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr!.on('data', (chunk: Buffer) => err.push(chunk))
  const [code] = await once(child, 'close')
  const errText = Buffer.concat(err).toString()
  assert.ok(errText === '' || errText.endsWith('\n'), `a whole line: ${errText}`)
  const outText = Buffer.concat(out).toString()
  for (const [apiKey] of outText.matchAll(/sk_\w{8}_[\w-]{43}/g)) noteSecret('api key', apiKey)
  noteText('error line', errText)
  return {
    code: code as number | null,
    out: outText,
    err: errText,
    problems: errText.split('\n').slice(0, -1),
  }
}
