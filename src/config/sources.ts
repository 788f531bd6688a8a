/** Reads the settings from the environment, from a file of settings, and from files with one secret each. */

import { readFileSync } from 'node:fs'
import { didYouMean } from '../domain/nearest.ts'
import { SETTINGS, type Setting, type SettingName } from './settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The settings that are set and not empty. Beside a secret from a file stands the variable that names the file. */
export type SettingValues = Readonly<Partial<Record<SettingName, string>>>

/** All problems of the configuration, one line each, each starting with a variable's name. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** Variables of the command line, which share the prefix but are not settings of the service. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set([
  'POWGATE_URL',
  'POWGATE_SITE_KEY',
  'POWGATE_API_KEY',
  'POWGATE_ACTOR',
])

/** Ends the name of a variable that gives the path of a file with a secret setting. */
const FILE_SUFFIX = '_FILE'

/**
 * The environment overrides POWGATE_CONFIG_FILE. In both, `<NAME>_FILE` may give the path of a file with a secret.
 *
 * @returns the settings, and all problems with how they were given
 */
export function gatherSettings(env: Environment): { values: SettingValues; problems: string[] } {
  const problems: string[] = []
  const configFile = env.POWGATE_CONFIG_FILE?.trim()
  const fromFile = configFile ? readSettingsFile(configFile, problems) : {}
  const values: Record<string, string> = {}
  for (const source of [fromFile, env]) {
    for (const [name, text] of Object.entries(source)) {
      const value = text?.trim()
      if (!value) continue
      if (name in SETTINGS) {
        values[name] = value
        delete values[name + FILE_SUFFIX]
      } else if (isSecretFile(name)) readSecret(name, value, values, problems)
      else if (name.startsWith('POWGATE_') && !OTHER_VARIABLES.has(name) && source === env)
        problems.push(`${name}: there is no such setting${didYouMean(name, Object.keys(SETTINGS))}`)
    }
    for (const name of Object.keys(source)) {
      const isTwice = isSecretFile(name) && source[name]?.trim() && source[secretOf(name)]?.trim()
      if (isTwice) problems.push(`${name}: ${secretOf(name)} is set too; expected one of the two`)
    }
  }
  return { values, problems }
}

/** The variable that a setting came from: its own, or that of its file. */
export function variableOf(values: SettingValues, name: SettingName): string {
  return name + FILE_SUFFIX in values ? name + FILE_SUFFIX : name
}

function secretOf(name: string): string {
  return name.slice(0, -FILE_SUFFIX.length)
}

function isSecretFile(name: string): boolean {
  const settings: Record<string, Setting> = SETTINGS
  return name.endsWith(FILE_SUFFIX) && settings[secretOf(name)]?.isSecret === true
}

function readSecret(name: string, path: string, values: Record<string, string>, problems: string[]): void {
  try {
    const secret = readFileSync(path, 'utf8').trim()
    values[name] = path
    if (secret === '') problems.push(`${name}: the file ${path} is empty`)
    // Several master secrets may be given, each on its own line.
    else values[secretOf(name)] = secret.split(/\s*\n\s*/).join(',')
  } catch (error) {
    problems.push(`${name}: cannot read ${path}: ${(error as Error).message}`)
  }
}

const LINE = /^(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$/

/** Reads lines of NAME=value; empty lines and lines that start with # are skipped. */
function readSettingsFile(path: string, problems: string[]): Record<string, string> {
  const settings: Record<string, string> = {}
  let lines: string[]
  try {
    lines = readFileSync(path, 'utf8').split('\n')
  } catch (error) {
    problems.push(`POWGATE_CONFIG_FILE: cannot read ${path}: ${(error as Error).message}`)
    return settings
  }
  lines.forEach((line, index) => {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) return
    const [, name, value] = LINE.exec(text) ?? []
    const at = `POWGATE_CONFIG_FILE: ${path} line ${index + 1}`
    if (name === undefined || value === undefined) problems.push(`${at}: expected NAME=value`)
    else if (name === 'POWGATE_CONFIG_FILE') problems.push(`${at}: a file of settings names no other`)
    else if (!(name in SETTINGS) && !isSecretFile(name))
      problems.push(`${at}: ${name}: there is no such setting${didYouMean(name, Object.keys(SETTINGS))}`)
    else if (name in settings) problems.push(`${at}: ${name}: expected once`)
    else settings[name] = unquoted(value)
  })
  return settings
}

function unquoted(value: string): string {
  const match = /^(["'])(.*)\1$/.exec(value)
  return match?.[2] ?? value
}
