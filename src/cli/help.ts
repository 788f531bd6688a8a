/** Help, written from the table of commands. */

import { PROGRAM } from '../version.ts'
import { type Command, type Flag, positionalWord, usageOf } from './command.ts'

const HELP_FLAG: Flag = { about: 'Print this help.' }

export function overview(commands: readonly Command[]): string {
  const calls = commands.map(({ name, positionals, about }) => {
    return [[name, ...positionals.map(positionalWord)].join(' '), about] as const
  })
  return `powgate: the service, its sites and API keys, and what an operator asks of it

Usage: ${PROGRAM} COMMAND [flags]

First steps: serve, site create, widget (the tag for a page), try (the whole flow). \`site\` or \`key\` in front is part of the name.

Commands:
${columns(calls)}

Flags:
${columns([
  ['--help', 'Print this help; after a command, its own.'],
  ['--config FILE', 'Of every command: the file of settings that serve is given.'],
  ['--version', 'Print the version.'],
])}

All but serve work beside the running service, on its store. They read the same settings: REDIS_URL, or without it
POWGATE_DATA_DIR (./data), which only serve makes. ${PROGRAM} serve --help lists every setting. POWGATE_ACTOR is who the audit log says it was.

Examples:
  ${PROGRAM} serve
  ${PROGRAM} site create --name shop --origin https://shop.example
`
}

export async function commandHelp(command: Command): Promise<string> {
  const flags = Object.entries({ ...command.flags, help: HELP_FLAG })
  const positionals = command.positionals.map(({ name, expects }) => [name, expects] as const)
  const { program = PROGRAM } = command
  return `${command.about}

Usage: ${program} ${usageOf(command)}

${positionals.length === 0 ? '' : `Arguments:\n${columns(positionals)}\n\n`}Flags:
${columns(flags.map(([name, flag]) => [flagCall(name, flag), flagText(flag)]))}

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

export function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}
