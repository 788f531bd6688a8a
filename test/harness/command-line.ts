/** Command lines of the benches and of the torture suite: tables of options, read by the parser of the service's own commands. */

import {
  type Command,
  commandHelp,
  type Flag,
  type Input,
  type Positional,
  readInput,
} from '../../src/cli/command.ts'
import { UsageError } from '../../src/words/errors.ts'
import { hasSignal } from './processes.ts'

export { UsageError }

/** A tool cannot go on, for a reason outside it, such as a missing program. The message is one line. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}

export interface Option<Value> extends Flag {
  readonly read: (input: Input, flag: string) => Value
}

/** Options by name; `maxAddresses` is the flag --max-addresses. */
export type Options = Readonly<Record<string, Option<unknown>>>
export type Values<Table extends Options> = {
  readonly [Name in keyof Table]: ReturnType<Table[Name]['read']>
}

interface ToolTable<Table extends Options> {
  /** The script in package.json. */
  readonly name: string
  readonly about: string
  readonly options: Table
  readonly positionals?: readonly Positional[]
  readonly example?: string
  readonly details: string
  readonly run: (options: Values<Table>, input: Input) => Promise<number>
}

/** A command of `npm run`, whose `run` gets the options as values. */
export function tool<Table extends Options>(table: ToolTable<Table>): Command {
  const { name, about, options, positionals = [], example = '', details, run } = table
  const all = Object.entries(options).map(([key, option]) => {
    return { key, flag: key.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`), option }
  })
  const valuesOf = (input: Input) =>
    Object.fromEntries(all.map(({ key, flag, option }) => [key, option.read(input, flag)])) as Values<Table>
  return {
    program: 'npm run',
    name: `${name} --`,
    about,
    positionals,
    flags: Object.fromEntries(all.map(({ flag, option }) => [flag, option])),
    example,
    details: async () => details,
    run: async input => {
      process.exitCode = await run(valuesOf(input), input)
    },
  }
}

/** Runs a tool and sets the exit code: 2 after a UsageError, 1 after another error. */
export async function runTool(command: Command, args: readonly string[]): Promise<void> {
  try {
    if (args.includes('--help')) process.stdout.write(`${await commandHelp(command)}\n`)
    else await command.run(readInput(command, args, {}))
  } catch (error) {
    if (hasSignal()) return // `stopOnSignal` says so, and ends this process
    const isExpected = error instanceof UsageError || error instanceof ToolError
    tell(isExpected ? error.message : String((error as Error).stack))
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}

/** Writes a line of progress, or of what went wrong, to standard error. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}

export function toggle(about: string): Option<boolean> {
  return { about, read: (input, flag) => input.has(flag) }
}

export function text(placeholder: string, about: string): Option<string | undefined> {
  const value = { placeholder, expects: 'a value', accepts: (given: string) => given !== '' }
  return { about, value, read: (input, flag) => input.text(flag) }
}

export function number<Fallback extends number | undefined>(
  fallback: Fallback,
  min: number,
  max: number,
  about: string,
  isWhole = false,
): Option<number | Fallback> {
  const expects = `${isWhole ? 'an integer' : 'a number'} from ${min} to ${max}`
  const accepts = (given: string) => {
    const value = Number(given)
    return given.trim() !== '' && value >= min && value <= max && (!isWhole || Number.isInteger(value))
  }
  return {
    about: `${about}; ${min} to ${max}${fallback === undefined ? '' : `, default ${fallback}`}.`,
    value: { placeholder: 'N', expects, accepts },
    read: (input, flag) => {
      const given = input.text(flag)
      return given === undefined ? fallback : Number(given)
    },
  }
}

export const integer: typeof number = (fallback, min, max, about) => number(fallback, min, max, about, true)
