/** The settings in compose.yaml and in the files for Kubernetes (docs/examples/). */

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../../src/config/config.ts'
import { SETTINGS, type Setting } from '../../../src/config/settings.ts'
import { TEST_SECRET } from '../../harness/service.ts'
import { temporaryDir } from '../../harness/temporary.ts'

/** A container's environment as the service would read it, with a secret in each named file. Throws if a name is no setting's. */
export function exampleConfig(environment: Readonly<Record<string, string>>): Config {
  const secret = join(temporaryDir('examples'), 'secret')
  writeFileSync(secret, TEST_SECRET)
  const settings: Record<string, Setting> = SETTINGS
  const entries = Object.entries(environment).map(([name, value]) => {
    const fallback = /^\$\{\w+:-(.*)\}$/.exec(value)?.[1] // Compose's ${NAME:-default}
    if (name in settings) return [name, fallback ?? value]
    assert.ok(settings[name.replace(/_FILE$/, '')]?.isSecret, `${name} is no setting`)
    return [name, secret]
  })
  return loadConfig(Object.fromEntries(entries))
}
