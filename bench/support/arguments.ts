/** What the command lines of the benches share: the checks of their options. */

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'

/** A mistake on the command line; its message is one line. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
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
