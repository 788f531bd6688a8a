/** The files for Kubernetes: the types of its objects know each field and value, and the objects fit each other, settings and metrics. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { METRICS } from '../../../src/metrics/table.ts'
import { installNpmPackages } from '../../harness/packages.ts'
import { exampleConfig } from './examples.ts'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const EXAMPLES = join(FOLDER, '../../../docs/examples')
const TSC = join(FOLDER, '../../../node_modules/.bin/tsc')
const CHECKED = join(FOLDER, 'node_modules/.checked.mts')

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind
type Objects = any[]

const { resources } = parse(readFileSync(join(EXAMPLES, 'kustomization.yaml'), 'utf8'))
const objects: Objects = resources.flatMap((name: string) =>
  parseAllDocuments(readFileSync(join(EXAMPLES, name), 'utf8')).map(document => document.toJS()),
)
const theOnly = (kind: string) => objects.find(object => object.kind === kind)

installNpmPackages(FOLDER)

/** @returns what TypeScript's compiler says of the objects as values of their types, '' if Kubernetes knows all of it */
function compilerErrorsOf(checked: Objects): string {
  const lines = checked.flatMap((object, index) => {
    const { apiVersion, kind } = object
    const models = apiVersion.startsWith('monitoring.')
      ? '@kubernetes-models/prometheus-operator'
      : 'kubernetes-models'
    const type = `import('${models}/${apiVersion}/${kind}').I${kind}`
    return `export const object${index}: ${type} = ${JSON.stringify(object)}`
  })
  writeFileSync(CHECKED, lines.join('\n'))
  const args = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--module', 'nodenext', CHECKED]
  return spawnSync(TSC, args, { cwd: FOLDER, encoding: 'utf8' }).stdout
}

test('each object has the fields and values that Kubernetes knows', () => {
  assert.ok(objects.length >= 6)
  assert.equal(compilerErrorsOf(objects), '')
  const misspelt = objects.map(object => ({ ...object, spec: { ...object.spec, replicass: 2 } }))
  assert.equal(compilerErrorsOf(misspelt).match(/'"replicass"' does not exist/g)?.length, objects.length)
  const wrong = objects.map(object => ({ ...object, spec: 'none' }))
  assert.equal(compilerErrorsOf(wrong).match(/error TS/g)?.length, objects.length)
})

test('the objects fit each other, the settings and the metrics', () => {
  for (const { metadata } of objects) assert.ok(metadata.name.startsWith('powgate'), JSON.stringify(metadata))
  const { spec, metadata } = theOnly('Deployment')
  const { template } = spec
  const [container] = template.spec.containers
  const ports = container.ports.map(({ name }: { name: string }) => name)
  const { selector, jobLabel, podMetricsEndpoints } = theOnly('PodMonitor').spec
  assert.equal(template.spec.enableServiceLinks, false) // the Service's name is powgate's prefix
  assert.deepEqual(selector.matchLabels, template.metadata.labels)
  assert.equal(template.metadata.labels[jobLabel], 'powgate') // the job of alerts.yml
  assert.ok(ports.includes(podMetricsEndpoints[0].port))
  const rules: { ports: { port: string }[] }[] = theOnly('NetworkPolicy').spec.ingress
  assert.equal(rules.filter(rule => rule.ports[0]!.port === 'http').length, 2) // visitors and backends
  const { scaleTargetRef, metrics } = theOnly('HorizontalPodAutoscaler').spec
  assert.deepEqual(scaleTargetRef, { apiVersion: 'apps/v1', kind: 'Deployment', name: metadata.name })
  const names = Object.values(METRICS).map(({ name }) => name)
  assert.ok(names.includes(metrics[0].pods.metric.name))
  const env = container.env.map(({ name, value }: { name: string; value: string }) => [name, value])
  assert.ok(exampleConfig(Object.fromEntries(env)).redis)
})
