/** The settings in the samples of deployments. */

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../../src/config/config.ts'
import { SETTINGS, type Setting } from '../../../src/config/settings.ts'
import { temporaryDir } from '../../harness/temporary.ts'

/** As the service reads it, with a secret in each file that is named. Throws AssertionError if a name is no setting's. */
export function exampleConfig(environment: Readonly<Record<string, string>>): Config {
  const secret = join(temporaryDir('examples'), 'secret')
  writeFileSync(secret, 'a'.repeat(43))
  const settings: Record<string, Setting> = SETTINGS
  const entries = Object.entries(environment).map(([name, value]) => {
    if (name in settings) return [name, value.replace(/^\$\{\w+:-(.*)\}$/, '$1')]
    assert.ok(settings[name.replace(/_FILE$/, '')]?.isSecret, `${name} is no setting`)
    return [name, secret]
  })
  return loadConfig(Object.fromEntries(entries))
}
