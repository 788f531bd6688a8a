/** All commands; and from the words of a call to its command: finds the command, reads its arguments, runs it. */

import { didYouMean } from '../domain/nearest.ts'
import { scrub } from '../log/redaction.ts'
import { UsageError } from '../sites/rules.ts'
import { AdminError } from '../sites/sites.ts'
import { VERSION } from '../version.ts'
import { AUDIT_COMMAND } from './audit.ts'
import { CHECK_COMMAND } from './check.ts'
import { type Command, type CommandEntry, commandHelp, type Flag, overview, readInput } from './command.ts'
import { EXPLAIN_COMMAND } from './explain.ts'
import { HOSTS_COMMAND } from './hosts.ts'
import { KEY_COMMANDS } from './key.ts'
import { printable } from './output.ts'
import { SERVE_COMMAND } from './serve.ts'
import { SITE_COMMANDS } from './site.ts'
import { SITES_FILE_COMMANDS } from './sites-file.ts'
import { SOLVE_COMMAND } from './solve.ts'
import { STORE_COMMANDS } from './store.ts'
import { TRY_COMMAND } from './try.ts'
import { WIDGET_COMMAND } from './widget.ts'

const CONFIG: Flag = {
  about: 'File of settings, one NAME=value a line; the environment goes before it.',
  value: {
    placeholder: 'FILE',
    variable: 'POWGATE_CONFIG_FILE',
    expects: 'a file of settings',
    accepts: text => text.trim() !== '',
  },
}

const JSON_FLAG: Flag = { about: 'Print JSON on one line instead of text.' }

/** All print JSON if asked. */
const PRINTING: readonly CommandEntry[] = [
  CHECK_COMMAND,
  ...SITE_COMMANDS,
  ...SITES_FILE_COMMANDS,
  ...KEY_COMMANDS,
  AUDIT_COMMAND,
  ...STORE_COMMANDS,
  HOSTS_COMMAND,
  EXPLAIN_COMMAND,
  TRY_COMMAND,
  SOLVE_COMMAND,
  WIDGET_COMMAND,
]

/** Every command takes --config, so that a command finds the store of a service that was started with --config. */
export const COMMANDS: readonly Command[] = [
  SERVE_COMMAND,
  ...PRINTING.map(command => ({ ...command, flags: { ...command.flags, json: JSON_FLAG } })),
].map(command => ({
  positionals: [],
  example: '',
  ...command,
  flags: { ...command.flags, config: CONFIG },
}))

/**
 * Runs a call, and writes what goes wrong as lines on stderr.
 *
 *   exit 0   done
 *   exit 1   it could not be done: no such site or key, the store or the service refused or cannot be reached
 *   exit 2   the call could not be understood; nothing was opened or changed
 *
 * @returns the exit code
 */
export async function answer(args: readonly string[]): Promise<number> {
  try {
    return await run(args)
  } catch (error) {
    const lines = scrub(problemText(error)).split('\n') // some repeat what was typed, or what a store said
    process.stderr.write(`${lines.map(printable).join('\n')}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

/** The text for stderr. Only an error in powgate itself is printed with its stack. */
function problemText(error: unknown): string {
  if (error instanceof UsageError || error instanceof AdminError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Returns the exit code. Throws UsageError and AdminError. */
export async function run(args: readonly string[]): Promise<number> {
  const [first] = args
  if (first === undefined) {
    process.stderr.write(overview(COMMANDS))
    return 2
  }
  if (isHelp(first) || first === 'help') {
    process.stdout.write(overview(COMMANDS))
    return 0
  }
  if (first === '--version') {
    const { serverBuildText } = await import('../server-build.ts')
    process.stdout.write(`powgate ${VERSION}\nHTTP server: ${serverBuildText()}\n`)
    return 0
  }
  const command = COMMANDS.find(({ name }) => name.split(' ').every((word, index) => word === args[index]))
  if (command === undefined) return runGroup(first, args.slice(1))
  const rest = args.slice(command.name.split(' ').length)
  if (rest.some(isHelp)) process.stdout.write(await commandHelp(command))
  else {
    const input = readInput(command, rest, process.env)
    // The functions that read settings take the file's path from this variable.
    process.env.POWGATE_CONFIG_FILE = input.text('config') ?? ''
    await command.run(input)
  }
  return Number(process.exitCode ?? 0)
}

/** A first word alone (`powgate site --help`), or words that are no command. */
function runGroup(first: string, [second]: readonly string[]): number {
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${first} `))
  if (group.length === 0) {
    const words = [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0]!))]
    const problem = `there is no such command${didYouMean(first, words)}`
    throw new UsageError(`${first}: ${problem}; expected ${words.join(', ')} or --help`)
  }
  if (second !== undefined && isHelp(second)) {
    process.stdout.write(overview(group))
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
