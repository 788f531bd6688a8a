/** Every command, in the order of the help. */

import { APPLY_COMMAND } from './apply.ts'
import { AUDIT_COMMAND } from './audit.ts'
import { CHECK_COMMAND } from './check.ts'
import type { Command, Flag } from './command.ts'
import { EXPLAIN_COMMAND } from './explain.ts'
import { SITES_FILE_COMMANDS } from './export.ts'
import { KEY_COMMANDS } from './key.ts'
import { POLICY_COMMANDS } from './policy.ts'
import { SERVE_COMMAND } from './serve.ts'
import { SITE_COMMANDS } from './site.ts'
import { SOLVE_COMMAND } from './solve.ts'
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

const OWN: readonly Command[] = [
  SERVE_COMMAND,
  CHECK_COMMAND,
  ...SITE_COMMANDS,
  ...SITES_FILE_COMMANDS,
  APPLY_COMMAND,
  ...KEY_COMMANDS,
  AUDIT_COMMAND,
  EXPLAIN_COMMAND,
  ...POLICY_COMMANDS,
  TRY_COMMAND,
  SOLVE_COMMAND,
  WIDGET_COMMAND,
]

/** Every command takes --config, so that a command finds the store of a service that was started with --config. */
export const COMMANDS = OWN.map(command => ({ ...command, flags: { ...command.flags, config: CONFIG } }))
