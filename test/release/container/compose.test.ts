/** compose.yaml: its settings are valid, its files are there, its grace period outlasts a stop, and it grants no needless rights. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import { exampleConfig } from './examples.ts'

const textOf = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

test('compose.yaml: its settings, networks, volumes and secrets are there; services have few rights, bounded logs and time to stop', () => {
  const { services, ...defined } = parse(textOf('compose.yaml'))
  /** The secrets that the commands in its first lines write. */
  const secretFiles = [...textOf('compose.yaml').matchAll(/^# .*> (secrets\/\S+)$/gm)].map(([, path]) => path)
  const { powgate } = services
  const config = exampleConfig(powgate.environment)
  assert.ok(config.redis !== undefined && services[new URL(powgate.environment.REDIS_URL).hostname])
  assert.ok(Number.parseInt(powgate.stop_grace_period, 10) * 1000 > config.unreadyMs + config.drainMs)
  assert.match(powgate.ports[0], new RegExp(`:${config.port}$`))
  for (const [name, service] of Object.entries<Record<string, string[]>>(services)) {
    assert.deepEqual([service.read_only, service.cap_drop], [true, ['ALL']], name)
    assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name)
    const { logging } = service as unknown as { logging: { options: Record<string, string> } }
    assert.ok(logging.options['max-size'] && logging.options['max-file'], `${name} has a bounded log`)
    for (const used of service.networks ?? []) assert.ok(used in defined.networks, `${name}: ${used}`)
    const mounts = service.volumes!.map(volume => volume.split(':'))
    // The last mount is the directory of secrets. A single file would go on to show what it held when it was mounted.
    assert.deepEqual(mounts.pop(), [`./secrets/${name}`, '/run/secrets', 'ro'])
    for (const [volume] of mounts) assert.ok(volume! in defined.volumes, volume)
    for (const [, secret] of JSON.stringify(service).matchAll(/\/run\/secrets\/([\w.-]+)/g))
      assert.ok(secretFiles.includes(`secrets/${name}/${secret}`), `${name} has no ${secret}`)
  }
})
