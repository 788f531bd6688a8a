/** `powgate serve`. Its help is the table of settings. */

import type { Setting } from '../config/settings.ts'
import type { CommandEntry } from './command.ts'

export const SERVE_COMMAND: CommandEntry = {
  name: 'serve',
  about: 'Run the service until a signal ends it.',
  details: settingsHelp,
  run: serve,
}

async function serve(): Promise<void> {
  process.setSourceMapsEnabled(true) // stacks in the log name lines of src/, not of dist/
  await import('../main.ts')
}

async function settingsHelp(): Promise<string> {
  const { SETTING_GROUPS } = await import('../config/settings.ts')
  const groups = Object.entries(SETTING_GROUPS).map(([heading, settings]) => {
    const entries = Object.entries<Setting>(settings).map(
      ([name, { fallback, expects, about, isSecret }]) => {
        const head = `  ${name}${fallback === '' ? '' : ` = ${fallback}`}`
        const file = isSecret ? ` Or a file that holds it: ${name}_FILE.` : ''
        return [head, wrapped(`${about}${file} Expects ${expects}.`)].join('\n')
      },
    )
    return `${heading}:\n${entries.join('\n')}`
  })
  return `Settings are environment variables, or lines of a file (--config). All mistakes are listed at the start.

${groups.join('\n\n')}

Signals:
  SIGTERM, SIGINT   drain and stop: not ready, listeners closed, requests finished, exit 0
  SIGHUP            read the settings again and replace the workers one by one, refusing nothing
`
}

/** Wraps lines at 100 characters, 6 of them the indent, unless a word is longer. */
function wrapped(text: string): string {
  return text.replaceAll(/(\S{95,}|.{1,94})(?: |$)/g, '      $1\n').trimEnd()
}
