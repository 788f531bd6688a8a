/**
 * compose.yaml: its settings exist and have valid values, and its files are there. Its grace period is longer than a
 * stop takes, and it grants no more rights than the service needs. The files for Kubernetes fit each other and the metrics.
 */

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { type Config, loadConfig } from '../../src/config/config.ts'
import { SETTINGS, type Setting } from '../../src/config/settings.ts'
import { METRICS } from '../../src/metrics/table.ts'
import { temporaryDir } from '../harness/temporary.ts'

const textOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** As the service reads it, with a secret in each file that is named. */
function configOf(environment: Readonly<Record<string, string>>): Config {
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

test('compose.yaml', () => {
  const { services, ...defined } = parse(textOf('compose.yaml'))
  /** What the commands in its first lines write. */
  const made = [...textOf('compose.yaml').matchAll(/^# .*> (secrets\/\S+)$/gm)].map(([, path]) => path)
  const { powgate } = services
  const config = configOf(powgate.environment)
  assert.ok(config.redis !== undefined && services[new URL(powgate.environment.REDIS_URL).hostname])
  assert.ok(Number.parseInt(powgate.stop_grace_period, 10) * 1000 > config.unreadyMs + config.drainMs)
  assert.match(powgate.ports[0], new RegExp(`:${config.port}$`))
  for (const [name, service] of Object.entries<Record<string, string[]>>(services)) {
    assert.deepEqual([service.read_only, service.cap_drop], [true, ['ALL']], name)
    assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name)
    for (const used of service.networks ?? []) assert.ok(used in defined.networks, `${name}: ${used}`)
    const [secrets, ...volumes] = service.volumes!.toReversed().map(volume => volume.split(':'))
    assert.deepEqual(
      secrets,
      [`./secrets/${name}`, '/run/secrets', 'ro'],
      'a directory, which follows a rename',
    )
    for (const [volume] of volumes) assert.ok(volume! in defined.volumes, volume)
    for (const [, secret] of JSON.stringify(service).matchAll(/\/run\/secrets\/([\w.-]+)/g))
      assert.ok(made.includes(`secrets/${name}/${secret}`), `${name} has no ${secret}`)
  }
})

test('kustomization.yaml', () => {
  const { resources } = parse(textOf('docs/examples/kustomization.yaml'))
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind
  const objects: any[] = resources.flatMap((name: string) =>
    parseAllDocuments(textOf(`docs/examples/${name}`)).map(document => document.toJS()),
  )
  const one = (kind: string) => objects.find(object => object.kind === kind)
  for (const { apiVersion, kind, metadata } of objects)
    assert.ok(apiVersion && kind && metadata.name.startsWith('powgate'), JSON.stringify(metadata))
  const { template } = one('Deployment').spec
  const [container] = template.spec.containers
  const ports = container.ports.map(({ name }: { name: string }) => name)
  const { selector, podMetricsEndpoints } = one('PodMonitor').spec
  assert.deepEqual(selector.matchLabels, template.metadata.labels)
  assert.ok(ports.includes(podMetricsEndpoints[0].port))
  const { scaleTargetRef, metrics } = one('HorizontalPodAutoscaler').spec
  assert.deepEqual(scaleTargetRef, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    name: one('Deployment').metadata.name,
  })
  const names = Object.values(METRICS).map(({ name }) => name)
  assert.ok(names.includes(metrics[0].pods.metric.name))
  const env = container.env.map(({ name, value }: { name: string; value: string }) => [name, value])
  assert.ok(configOf(Object.fromEntries(env)).redis)
})
