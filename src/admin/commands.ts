/** Every command, in the order of the help. */

import { CHECK_COMMAND } from './check-command.ts'
import type { Command } from './command.ts'
import { EXPLAIN_COMMAND } from './explain.ts'
import { KEY_COMMANDS } from './key-commands.ts'
import { SERVE_COMMAND } from './serve-command.ts'
import { SITE_COMMANDS } from './site-commands.ts'
import { TRY_COMMAND } from './try-command.ts'
import { WIDGET_COMMAND } from './widget-command.ts'

export const COMMANDS: readonly Command[] = [
  SERVE_COMMAND,
  CHECK_COMMAND,
  ...SITE_COMMANDS,
  ...KEY_COMMANDS,
  EXPLAIN_COMMAND,
  TRY_COMMAND,
  WIDGET_COMMAND,
]
