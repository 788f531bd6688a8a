/** `powgate check`: reports the mistakes of a configuration, and what the service would do. Changes nothing. */

import { type Config, loadConfig } from '../config/config.ts'
import { isSecretToBeMade } from '../config/secrets.ts'
import { ConfigError, type Environment } from '../config/sources.ts'
import { isLoopback } from '../domain/address.ts'
import { Keyring } from '../domain/keyring.ts'
import type { CheckResults } from './findings.ts'
import { checkMachine } from './machine.ts'
import { checkStore } from './store.ts'

export async function check(env: Environment): Promise<CheckResults> {
  const findings: CheckResults = { facts: [], problems: [], warnings: [], notes: [] }
  try {
    await examine(loadConfig(env), env, findings)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    findings.problems.push(...error.problems)
  }
  return findings
}

async function examine(config: Config, env: Environment, findings: CheckResults): Promise<void> {
  findings.warnings.push(...config.warnings)
  describeListening(config, findings)
  describeAddresses(config, findings)
  describeSecrets(config, env, findings)
  const sites = await checkStore(config, findings)
  describeRules(config, findings)
  describeWatching(config, findings)
  await checkMachine(config, sites, findings)
}

function describeListening({ host, port, workers }: Config, { facts }: CheckResults): void {
  const where = port === 0 ? `${host}, on a free port` : `${host}:${port}`
  facts.push(['listens on', `${where}, with ${workers} worker${workers === 1 ? '' : 's'}`])
}

function describeAddresses(config: Config, { facts, warnings, notes }: CheckResults): void {
  if (config.trustedProxies.isEmpty) {
    facts.push(['visitors are', 'whoever connects: X-Forwarded-For is ignored'])
    if (isLoopback(config.host))
      warnings.push(
        'HOST is a loopback address, so everybody comes through a proxy of this machine and is one visitor: set POWGATE_TRUSTED_PROXIES',
      )
    else
      notes.push(
        'nobody is trusted: behind a proxy or balancer all visitors would be that one address; if there is one, set POWGATE_TRUSTED_PROXIES',
      )
    return
  }
  const protocol = config.proxyProtocol ? 'PROXY protocol v2 and X-Forwarded-For' : 'X-Forwarded-For'
  facts.push(['visitors are', `whom the trusted proxies name by ${protocol}; else whoever connects`])
}

function describeSecrets(config: Config, env: Environment, { facts, warnings }: CheckResults): void {
  const { secrets } = config
  if (secrets.length === 0) {
    const state = isSecretToBeMade(config) ? 'generated at the start' : 'generated, in the data directory'
    facts.push(['secrets', state])
    return
  }
  const from = env.POWGATE_SECRETS ? 'the environment' : 'a file'
  const keyIds = secrets.map(secret => new Keyring([secret]).signing.kid)
  facts.push(['secrets', `${secrets.length} from ${from}; the first signs, with key id ${keyIds[0]}`])
  if (new Set(secrets).size < secrets.length) warnings.push('POWGATE_SECRETS: a secret is there twice')
}

function describeRules(config: Config, { facts, warnings }: CheckResults): void {
  const { limits, failOpen, challengeLifetimeMs, tokenLifetimeMs } = config
  facts.push([
    'limits a minute',
    `/challenge ${limits.challengeAddress} per address, ${limits.challengeAddressSite} at one site; ` +
      `/verify ${limits.verifyAddress} and ${limits.verifyAddressSite}; ` +
      `/verify-token ${limits.redeemAddress} per caller, ${limits.redeemApiKey} per API key`,
  ])
  facts.push([
    'lifetimes',
    `challenge ${challengeLifetimeMs / 1000} s or more, token ${tokenLifetimeMs / 1000} s`,
  ])
  const open = Object.entries(failOpen).flatMap(([endpoint, isOpen]) => (isOpen ? [`/${endpoint}`] : []))
  if (config.redis !== undefined)
    facts.push([
      'without Redis',
      open.length === 0 ? 'everything is refused' : `${open.join(', ')} go on from memory`,
    ])
  if (config.demo === 'on') warnings.push('POWGATE_DEMO is on: /demo is public')
}

function describeWatching({ adminHost, adminPort }: Config, { facts, warnings }: CheckResults): void {
  const where = adminPort === undefined ? 'none: set POWGATE_ADMIN_PORT' : `${adminHost}:${adminPort}`
  facts.push(['health, metrics', where])
  if (adminPort !== undefined && !isLoopback(adminHost))
    warnings.push('POWGATE_ADMIN_HOST is no loopback address: whoever can reach it sees metrics and sites')
}
