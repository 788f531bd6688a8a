/** Shared by the command lines of all benches: how options are checked, and how a bench ends. */

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'

/** A bench cannot go on, for a reason outside it, such as a missing program. The message is one line. */
export class BenchError extends Error {
  override readonly name: string = 'BenchError'
}

/** A mistake on the command line. */
export class UsageError extends BenchError {
  override readonly name = 'UsageError'
}

/**
 * Runs a bench and sets the exit code: 2 after a UsageError, 1 after another error.
 *
 * @param parseOptions undefined: help is asked for
 * @param bench returns the exit code
 */
export async function runBench<Options>(
  help: string,
  parseOptions: (args: readonly string[]) => Options | undefined,
  bench: (options: Options) => Promise<number>,
): Promise<void> {
  try {
    const options = parseOptions(process.argv.slice(2))
    if (options === undefined) process.stdout.write(`${help}\n`)
    else process.exitCode = await bench(options)
  } catch (error) {
    tell(error instanceof BenchError ? error.message : String((error as Error).stack))
    process.exitCode = error instanceof UsageError ? 2 : 1
  }
}

/** On standard error: progress, and what went wrong. */
export function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Options and positionals as texts. Throws UsageError. */
export function parsed<Config extends Omit<ParseArgsConfig, 'args'>>(
  args: readonly string[],
  config: Config,
) {
  try {
    return parseArgs({ ...config, args: [...args] })
  } catch (error) {
    throw new UsageError((error as Error).message.replaceAll('\n', ' '))
  }
}

export function oneOf<Name extends string>(option: string, text: string, names: readonly Name[]): Name {
  const name = names.find(known => known === text)
  if (name === undefined) throw new UsageError(`${option}: expected one of ${names.join(', ')}, got ${text}`)
  return name
}

export function number(option: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= min && value <= max)) {
    throw new UsageError(`${option}: expected a number from ${min} to ${max}, got ${text}`)
  }
  return value
}

export function integer(option: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < min || value > max) {
    throw new UsageError(`${option}: expected an integer from ${min} to ${max}, got ${text}`)
  }
  return value
}

/** A file that is written after the measuring: that it cannot be must show before. */
export function writableFile(option: string, file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch (error) {
    throw new UsageError(`${option}: cannot write ${file}: ${(error as NodeJS.ErrnoException).code}`)
  }
  return file
}
