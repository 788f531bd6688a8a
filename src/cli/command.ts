/** Commands as table entries, from which parsing, errors and help follow. */

import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { ValueRule } from '../domain/value-forms.ts'
import { PROGRAM } from '../version.ts'
import { UsageError } from '../words/errors.ts'
import { didYouMean } from '../words/nearest.ts'
import { inColumns, type Pair } from './output.ts'

export interface FlagValue extends ValueRule {
  readonly placeholder: string
  /** The flag may be given several times; without this, a second use is an error. */
  readonly repeats?: true
  /** The environment variable that is read if the flag is not given. */
  readonly variable?: string
}

export function fileValue(expects: string): FlagValue {
  return { placeholder: 'FILE', expects, accepts: text => text !== '' }
}

export interface Flag {
  readonly about: string
  /** undefined for a switch. */
  readonly value?: FlagValue | undefined
  readonly short?: string
  readonly isRequired?: true
  /** The flag that may not be given together with this one. */
  readonly contradicts?: string | undefined
}

export interface Positional extends ValueRule {
  readonly name: string
  readonly isOptional?: true
  /** Any number of values may come. Only a command's last argument may have this. */
  readonly repeats?: true
}

export interface Command {
  /** The program's name in the help, PROGRAM if not set: benches use this module too. */
  readonly program?: string
  readonly name: string
  readonly about: string
  readonly positionals: readonly Positional[]
  /** The names are without their leading `--`. */
  readonly flags: Readonly<Record<string, Flag>>
  /** The arguments and flags of a typical call. */
  readonly example: string
  /** Makes the last part of the command's help. */
  readonly details?: () => Promise<string>
  /** Returns the exit code, or nothing for 0. */
  readonly run: (input: Input) => Promise<number> | Promise<void>
}

/** A command as its file declares it. run.ts adds what is left out, `--json` and `--config`. */
export type CommandEntry = Omit<Command, 'positionals' | 'flags' | 'example'> &
  Partial<Pick<Command, 'positionals' | 'flags' | 'example'>>

export class Input {
  readonly #values: ReadonlyMap<string, readonly string[]>

  /** @param values the texts of each flag (by its name without dashes) and argument (in capitals); a switch has an empty list */
  constructor(values: ReadonlyMap<string, readonly string[]>) {
    this.#values = values
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  text(name: string): string | undefined {
    return this.#values.get(name)?.[0]
  }

  texts(name: string): readonly string[] | undefined {
    return this.#values.get(name)
  }

  /** Takes the name of a flag or an argument that is declared as required. */
  required(name: string): string {
    return this.text(name)!
  }
}

export function positionalWord({ name, isOptional, repeats }: Positional): string {
  const word = repeats ? `${name}...` : name
  return isOptional ? `[${word}]` : word
}

function usageOf({ name, positionals, flags }: Command): string {
  const words = positionals.map(positionalWord)
  const required = Object.entries(flags)
    .filter(([, { isRequired }]) => isRequired)
    .map(([flag, { value }]) => `--${flag} ${value?.placeholder}`)
  return [name, ...words, ...required, '[flags]'].join(' ')
}

/** Reads what follows a command's name, and the variables of the flags that are not given. @throws UsageError */
export function readInput(command: Command, args: readonly string[], env: NodeJS.ProcessEnv): Input {
  const { values: given, positionals: words } = parseWords(command, args)
  const values = new Map<string, readonly string[]>()
  command.positionals.forEach((positional, index) => {
    const texts = positional.repeats ? words.slice(index) : words.slice(index, index + 1)
    if (texts.length > 0) {
      const valid = texts.map(text => validText(positional.name, positional, text))
      values.set(positional.name, valid)
    } else if (!positional.isOptional)
      throw new UsageError(`${positional.name}: missing; expected ${positional.expects}`)
  })
  const takesAny = command.positionals.at(-1)?.repeats === true
  const extra = takesAny ? undefined : words[command.positionals.length]
  if (extra !== undefined)
    throw new UsageError(
      `unexpected argument ${JSON.stringify(extra)}; usage: ${command.program ?? PROGRAM} ${usageOf(command)}`,
    )
  for (const [name, flag] of Object.entries(command.flags)) {
    const texts = flagTexts(name, flag, given[name], env)
    if (texts !== undefined) values.set(name, texts)
  }
  for (const [name, { contradicts }] of Object.entries(command.flags)) {
    if (contradicts !== undefined && values.has(name) && values.has(contradicts))
      throw new UsageError(`--${name}, --${contradicts}: expected one of the two, not both`)
  }
  return new Input(values)
}

/** Lets every flag with a value repeat, so that `flagTexts` can refuse a second use. */
function parseWords(command: Command, args: readonly string[]) {
  const options: NonNullable<ParseArgsConfig['options']> = {}
  for (const [name, { value, short }] of Object.entries(command.flags)) {
    options[name] = {
      ...(value === undefined ? { type: 'boolean' } : { type: 'string', multiple: true }),
      ...(short === undefined ? {} : { short }),
    }
  }
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
  } catch (error) {
    throw asUsageError(error as NodeJS.ErrnoException, command)
  }
}

/** Returns an error of parseArgs as a UsageError that says what was expected; any other error as it is. */
function asUsageError(error: NodeJS.ErrnoException, { name, flags }: Command): Error {
  // Node.js names a flag with a short form as '-f, --file <value>'.
  const flag = /'(?:-\w, )?(-[^' ,<]+)/.exec(error.message)?.[1] ?? 'flags'
  const value = flags[flag.slice(2)]?.value
  if (error.code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE')
    return new UsageError(`${flag}: expected ${value?.expects ?? 'no value'}`)
  if (error.code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return error
  const names = [...Object.keys(flags), 'help'].map(name => `--${name}`)
  const problem = `there is no such flag${didYouMean(flag, names)}`
  return new UsageError(`${flag}: ${problem}; ${name} has ${names.join(', ')}`)
}

type GivenFlag = ReturnType<typeof parseWords>['values'][string]

/** Returns what the command line, or else the variable, gives the flag: an empty list for a switch, undefined for nothing. */
function flagTexts(
  name: string,
  { value, isRequired }: Flag,
  given: GivenFlag,
  env: NodeJS.ProcessEnv,
): readonly string[] | undefined {
  if (value === undefined) return given === true ? [] : undefined
  if (Array.isArray(given)) {
    if (given.length > 1 && !value.repeats) throw new UsageError(`--${name}: expected once`)
    return given.map(text => validText(`--${name}`, value, String(text)))
  }
  const { variable } = value
  const text = variable === undefined ? undefined : env[variable]?.trim()
  if (variable !== undefined && text) return [validText(variable, value, text)]
  if (isRequired) {
    const names = variable === undefined ? `--${name}` : `--${name} or ${variable}`
    throw new UsageError(`${names}: missing; expected ${value.expects}`)
  }
  return undefined
}

/** @param name of the flag, argument or variable. @throws UsageError if the rule does not accept the text */
function validText(name: string, rule: ValueRule, text: string): string {
  if (rule.accepts(text)) return text
  const got = rule.isSecret ? '' : `, got ${JSON.stringify(text)}`
  const meant = rule.suggest?.(text)
  const suggestion = meant === undefined ? '' : `; did you mean ${meant}?`
  throw new UsageError(`${name}: expected ${rule.expects}${got}${suggestion}`)
}

export function overview(commands: readonly Command[]): string {
  const calls = commands.map(({ name, positionals, about }) => {
    return [[name, ...positionals.map(positionalWord)].join(' '), about] as const
  })
  return `powgate: runs the service, manages its sites and API keys, and answers an operator's questions

Usage: ${PROGRAM} COMMAND [flags]

First steps: serve, site create, widget (the tag for a page), try (the whole flow). Some commands are two words, such as site create.

Commands:
${table(calls)}

Flags:
${table([
  ['--help', 'Print this help, or that of the command before it.'],
  ['--config FILE', 'The file of settings that the service reads. Every command takes it.'],
  ['--version', 'Print the version.'],
])}

All commands but serve work on the store of the service, while it runs or not. They read the same settings: REDIS_URL, or else
POWGATE_DATA_DIR (./data), which only serve creates. ${PROGRAM} serve --help lists every setting. The audit log names you by POWGATE_ACTOR.

Examples:
  ${PROGRAM} serve
  ${PROGRAM} site create --name shop --origin https://shop.example
`
}

export async function commandHelp(command: Command): Promise<string> {
  const flags = Object.entries<Flag>({ ...command.flags, help: { about: 'Print this help.' } })
  const positionals = command.positionals.map(({ name, expects }) => [name, expects] as const)
  const { program = PROGRAM } = command
  return `${command.about}

Usage: ${program} ${usageOf(command)}

${positionals.length === 0 ? '' : `Arguments:\n${table(positionals)}\n\n`}Flags:
${table(flags.map(([name, flag]) => [flagCall(name, flag), flagText(flag)]))}

Example:
  ${`${program} ${command.name} ${command.example}`.trimEnd()}
${command.details === undefined ? '' : `\n${await command.details()}`}`
}

function flagCall(name: string, { value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name} ${value.placeholder}`
}

function flagText({ about, value, short, isRequired }: Flag): string {
  const notes = [
    ...(short === undefined ? [] : [`Short: -${short}.`]),
    ...(isRequired ? ['Required.'] : []),
    ...(value?.repeats ? ['May be repeated.'] : []),
    ...(value?.variable === undefined ? [] : [`Or ${value.variable}.`]),
  ]
  return [about, ...notes].join(' ')
}

function table(rows: readonly Pair[]): string {
  return inColumns(rows).join('\n')
}
