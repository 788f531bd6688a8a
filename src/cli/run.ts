/** Finds the command of a call, reads its arguments, runs it. */

import { scrubByForm } from '../log/redaction.ts'
import { VERSION } from '../version.ts'
import { OperatorError, UsageError } from '../words/errors.ts'
import { didYouMean } from '../words/nearest.ts'
import { type Command, type CommandEntry, commandHelp, type Flag, overview, readInput } from './command.ts'
import { print, printable } from './output.ts'

const CONFIG: Flag = {
  about: 'File of settings, one NAME=value a line; the environment takes precedence.',
  value: {
    placeholder: 'FILE',
    variable: 'POWGATE_CONFIG_FILE',
    expects: 'a file of settings',
    accepts: text => text.trim() !== '',
  },
}

const JSON_FLAG: Flag = { about: 'Print JSON on one line instead of text.' }

/** The first words of commands, in the order of the help. A call loads only its own: loading all takes as long as starting Node.js. */
const LOAD: Readonly<Record<string, () => Promise<readonly CommandEntry[]>>> = {
  serve: async () => [(await import('./serve.ts')).SERVE_COMMAND],
  check: async () => [(await import('./check.ts')).CHECK_COMMAND],
  site: async () => (await import('./site.ts')).SITE_COMMANDS,
  apply: async () => [(await import('./apply.ts')).APPLY_COMMAND],
  key: async () => (await import('./key.ts')).KEY_COMMANDS,
  audit: async () => [(await import('./audit.ts')).AUDIT_COMMAND],
  hosts: async () => [(await import('./hosts.ts')).HOSTS_COMMAND],
  explain: async () => [(await import('./explain.ts')).EXPLAIN_COMMAND],
  forget: async () => [(await import('./forget.ts')).FORGET_COMMAND],
  try: async () => [(await import('./try.ts')).TRY_COMMAND],
  solve: async () => [(await import('./solve.ts')).SOLVE_COMMAND],
  widget: async () => [(await import('./widget.ts')).WIDGET_COMMAND],
}

/** Loads the commands that begin with these words. */
export async function commandsOf(words: readonly string[] = Object.keys(LOAD)): Promise<Command[]> {
  const lists = await Promise.all(words.map(word => LOAD[word]!()))
  return lists.flat().map(command => {
    const json = command.name === 'serve' ? {} : { json: JSON_FLAG }
    const flags = { ...command.flags, ...json, config: CONFIG }
    return { positionals: [], example: '', ...command, flags }
  })
}

/** Prints errors. Returns the exit code: 0 done; 1 not possible; 2 not understood, and nothing was opened or changed. */
export async function answer(args: readonly string[]): Promise<number> {
  try {
    return await run(args)
  } catch (error) {
    const lines = scrubByForm(problemText(error)).split('\n') // it may repeat a secret that was typed
    process.stderr.write(`${lines.map(printable).join('\n')}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

/** Shows a stack only for a fault of powgate. */
function problemText(error: unknown): string {
  if (error instanceof OperatorError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

async function run(args: readonly string[]): Promise<number> {
  const [first] = args
  if (first === undefined) {
    process.stderr.write(overview(await commandsOf()))
    return 2
  }
  if (isHelp(first) || first === 'help') {
    print(overview(await commandsOf()))
    return 0
  }
  if (first === '--version') {
    const { serverBuildText } = await import('../server-build.ts')
    print(`powgate ${VERSION}\nHTTP server: ${serverBuildText()}\n`)
    return 0
  }
  if (!Object.hasOwn(LOAD, first)) {
    const words = Object.keys(LOAD)
    const problem = `there is no such command${didYouMean(first, words)}`
    throw new UsageError(`${first}: ${problem}; expected ${words.join(', ')} or --help`)
  }
  const group = await commandsOf([first])
  const command = group.find(({ name }) => name.split(' ').every((word, index) => word === args[index]))
  if (command === undefined) return runGroup(first, group, args[1])
  const rest = args.slice(command.name.split(' ').length)
  if (rest.some(isHelp)) {
    print(await commandHelp(command))
    return 0
  }
  const input = readInput(command, rest, process.env)
  // The settings of commands (commandSettings) and of the service (start.ts) take the file's path from this variable.
  process.env.POWGATE_CONFIG_FILE = input.text('config') ?? ''
  return (await command.run(input)) ?? 0
}

/** Answers `powgate site --help`; refuses `powgate site`, and words that follow `site` but name none of its commands. */
function runGroup(first: string, group: readonly Command[], second: string | undefined): number {
  if (second !== undefined && isHelp(second)) {
    print(overview(group))
    return 0
  }
  const words = group.map(({ name }) => name.split(' ')[1]!)
  if (second === undefined) throw new UsageError(`${first}: expected one of ${words.join(', ')}`)
  const problem = `there is no such command${didYouMean(second, words)}`
  throw new UsageError(`${first} ${second}: ${problem}; ${first} has ${words.join(', ')}`)
}

function isHelp(argument: string): boolean {
  return argument === '--help' || argument === '-h'
}
