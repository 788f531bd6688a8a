/** `powgate check`: reports mistakes and what the service would do, in the order of docs/go-live.md. It changes nothing that lasts. */

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { type AddressSet, isLoopback, parseAddress } from '../addresses/address.ts'
import { type Config, configFlag, loadConfig } from '../config/config.ts'
import { fewFiles } from '../config/open-files.ts'
import { type ListenAddress, listenError, migratesConnections, tryPort } from '../config/ports.ts'
import { IF_GONE, isSecretToBeMade, secretPath } from '../config/secrets.ts'
import type { ServiceState } from '../dashboard/service-state.ts'
import { isNotDemo } from '../demo/site.ts'
import { CONTRACT_LIMITS } from '../domain/endpoint.ts'
import { Keyring } from '../domain/keyring.ts'
import { OUTCOMES } from '../domain/outcome.ts'
import type { SiteRecord } from '../domain/site.ts'
import { serverBuild, serverBuildText, UNKNOWN_BUILD } from '../server-build.ts'
import { noSitesText, restoreSteps } from '../sites/export-file.ts'
import { hasServedFrom } from '../store/embedded/data-dir.ts'
import { PROGRAM } from '../version.ts'
import { OperatorError } from '../words/errors.ts'
import { STORE_CAUSES } from '../words/reasons.ts'
import { checkStore, type Findings, NONE_YET } from './check-store.ts'

export async function check(env: NodeJS.ProcessEnv): Promise<Findings> {
  const findings: Findings = { facts: [], problems: [], warnings: [], notes: [] }
  try {
    await examine(loadConfig(env), env, findings)
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    findings.problems.push(...error.message.split('\n'))
  }
  return findings
}

async function examine(config: Config, env: NodeJS.ProcessEnv, findings: Findings): Promise<void> {
  findings.warnings.push(...config.warnings)
  describeSecrets(config, env, findings)
  await describeListening(config, findings)
  describeAddresses(config, findings)
  // Asked before `checkStore`, which may open an embedded store itself: workers whose store process died would connect to that one, and
  // seem well.
  const ofService = await askDashboard(config)
  const storedSites = await checkStore(config, findings)
  for (const siteKey of config.metricsSites)
    if (storedSites?.every(site => site.siteKey !== siteKey))
      findings.warnings.push(`POWGATE_METRICS_SITES: there is no site ${siteKey}`)
  describeRules(config, findings, storedSites)
  describeWatching(config, findings)
  const isOurs = await checkPorts(config, storedSites ?? [], findings)
  const sitesLost = isOurs ? passOnWarnings(ofService, findings) : 0
  const willHaveOne = storedSites === NONE_YET || storedSites?.some(isNotDemo)
  if (storedSites !== undefined && !willHaveOne && sitesLost === 0)
    findings.warnings.push(noSitesText(config, { isStart: false }))
  checkKernel(config, findings)
}

async function describeListening(
  { host, port, workers, demo }: Config,
  { facts, warnings, problems }: Findings,
): Promise<void> {
  const where = port === 0 ? `${host}, on a free port` : `${host}:${port}`
  facts.push(['listens on', `${where}, with ${workers} worker${workers === 1 ? '' : 's'}`])
  facts.push(['HTTP server', serverBuildText()])
  if (demo === 'on') warnings.push('POWGATE_DEMO is on: /demo is public')
  if (!serverBuild().isKnown) warnings.push(UNKNOWN_BUILD)
  await import('uWebSockets.js').catch(error => {
    problems.push(`the HTTP server cannot be loaded; run npm ci to restore it: ${(error as Error).message}`)
  })
}

function describeAddresses(config: Config, { facts, notes }: Findings): void {
  if (config.trustedProxies.isEmpty) {
    facts.push(['visitors are', 'the addresses that connect: X-Forwarded-For is ignored'])
    if (!isLoopback(config.host))
      notes.push(
        'no proxy is trusted: behind one, all visitors would share its address and one rate limit; if you have one, set POWGATE_TRUSTED_PROXIES',
      )
    return
  }
  const protocol = config.proxyProtocol ? 'the PROXY protocol and X-Forwarded-For' : 'X-Forwarded-For'
  facts.push([
    'visitors are',
    `those that trusted proxies name by ${protocol}, else the addresses that connect`,
  ])
}

function describeSecrets(config: Config, env: NodeJS.ProcessEnv, { facts, warnings }: Findings): void {
  const { secrets } = config
  if (secrets.length === 0) {
    const isMissing = isSecretToBeMade(config)
    facts.push(['secrets', isMissing ? 'generated at the start' : 'generated, in the data directory'])
    if (isMissing && hasServedFrom(config.dataDir))
      warnings.push(`POWGATE_DATA_DIR: the secret ${secretPath(config)}: ${IF_GONE}`)
    return
  }
  const from = env.POWGATE_SECRETS ? 'the environment' : 'a file'
  // Two secrets may have the same key id, so the fingerprint is told too.
  const { kid, fingerprint } = new Keyring(secrets).signing
  const first = `key id ${kid}, SHA-256 ${fingerprint}...`
  facts.push(['secrets', `${secrets.length} from ${from}; the first signs: ${first}`])
  if (new Set(secrets).size < secrets.length)
    warnings.push('POWGATE_SECRETS: the same secret is listed twice; remove one')
}

function describeRules(config: Config, { facts, notes }: Findings, sites?: readonly SiteRecord[]): void {
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
  const isServiceLimitInUse = sites?.length === 0 || sites?.some(site => site.limits?.redeem === undefined)
  if (limits.redeemAddress <= CONTRACT_LIMITS.redeemAddress && isServiceLimitInUse)
    notes.push(
      `a backend may redeem ${limits.redeemAddress} tokens a minute from one address, and ${limits.redeemApiKey} with one API key; for more: ${PROGRAM} site update SITE_KEY --limit-redeem N${configFlag()}`,
    )
  const open = Object.entries(failOpen).flatMap(([endpoint, isOpen]) => (isOpen ? [`/${endpoint}`] : []))
  if (config.redis !== undefined)
    facts.push([
      'without Redis',
      open.length === 0 ? 'everything is refused' : `${open.join(', ')} go on from memory`,
    ])
}

function describeWatching({ redis, adminHost, adminPort }: Config, { facts, warnings }: Findings): void {
  const where = adminPort === undefined ? 'none: set POWGATE_ADMIN_PORT' : `${adminHost}:${adminPort}`
  facts.push(['health, metrics', where])
  if (adminPort === undefined && redis !== undefined)
    warnings.push(
      'POWGATE_ADMIN_PORT is not set: if Redis loses sites, the service remembers them, but only there can they be read back',
    )
  if (adminPort !== undefined && !isLoopback(adminHost))
    warnings.push('POWGATE_ADMIN_HOST is no loopback address: whoever can reach it sees metrics and sites')
}

function checkKernel(config: Config, { warnings, notes }: Findings): void {
  warnings.push(...fewFiles(config))
  if (migratesConnections() === false)
    notes.push(
      'net.ipv4.tcp_migrate_req is 0: connections that arrive at the very moment a worker is replaced can be reset; set it to 1',
    )
}

/** Tells about both ports. @returns whether the running service has the admin port */
async function checkPorts(config: Config, sites: readonly SiteRecord[], findings: Findings) {
  const { adminHost: host, adminPort: port } = config
  const admin = port === undefined ? undefined : { host, port }
  const isReady = admin && (await ask(admin, '/readyz'))?.ok
  const atAdminPort = isReady === undefined ? 'no powgate' : isReady ? 'ready' : 'waiting'
  const isRunning = await checkPort(config, '', findings, async () => {
    return (await isThisService(config, sites)) ?? atAdminPort !== 'no powgate' // no answer: its connections may be full
  })
  if (admin === undefined) return false
  // A service that waits for its store has no other port than this. One that is ready would have the main port too.
  const isOurs = isRunning ? atAdminPort !== 'no powgate' : atAdminPort === 'waiting'
  return checkPort(admin, 'POWGATE_ADMIN_', findings, async () => isOurs)
}

/** Returns what the running service tells on its dashboard, nothing if none answers. One of another version may lack some of it. */
async function askDashboard({ adminHost: host, adminPort: port }: Config): Promise<Partial<ServiceState>> {
  const data = port === undefined ? undefined : await ask({ host, port }, '/dashboard/data.json')
  return data?.service ?? {}
}

/** Adds the running service's warnings. @returns how many sites and API keys its store has lost */
function passOnWarnings(service: Partial<ServiceState>, { warnings }: Findings): number {
  const { sitesLost = 0, backends = [], storeCauses = [], differences = [] } = service
  const { isReady = true, isReloadDone = true } = service
  const causes = storeCauses.map(cause => STORE_CAUSES[cause] ?? cause).join('; ')
  if (causes !== '') warnings.push(`the store does not answer workers of the running service: ${causes}`)
  if (!isReady) warnings.push('the running service is not ready: balancers send it nothing; see its log')
  for (const difference of differences)
    warnings.push(`the running service and another host of its store refuse each other: ${difference}`)
  if (!isReloadDone) warnings.push('the last SIGHUP has not renewed all running workers: see the log')
  // Before all other warnings: whoever restarts the service because of one of them loses these sites.
  if (sitesLost > 0)
    warnings.unshift(
      `the store has lost ${sitesLost} sites or API keys, which the running service remembers: ${restoreSteps()}`,
    )
  warnings.push(...backends.map(({ text }) => text))
  return sitesLost
}

/** Notes that this service runs already and has the port; it is a problem if another program has it. @returns whether it is this service */
async function checkPort(
  address: ListenAddress,
  variablePrefix: '' | 'POWGATE_ADMIN_',
  findings: Findings,
  isOurs: (address: ListenAddress) => Promise<boolean>,
): Promise<boolean> {
  const error = await tryPort(address).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  )
  if (error === undefined) return false
  const isRunning = error.code === 'EADDRINUSE' && (await isOurs(address))
  if (isRunning) findings.notes.push(`port ${address.port} is in use by this service, which runs already`)
  else findings.problems.push(listenError(address, error, variablePrefix).message)
  return isRunning
}

/**
 * True if the service at the port knows one of the store's random site keys; undefined if nobody answers. Without a site, any powgate
 * is taken for this one.
 */
async function isThisService(config: Config, sites: readonly SiteRecord[]): Promise<boolean | undefined> {
  const site = sites.find(isNotDemo)
  const headers = site === undefined ? {} : { 'X-Site-Key': site.siteKey }
  const proxies = config.proxyProtocol ? config.trustedProxies : undefined
  const answer = await ask(config, '/challenge', headers, proxies)
  if (answer === undefined) return undefined
  const { nonce, code } = answer
  if (site !== undefined && code === OUTCOMES['site-unknown'].code) return false
  return typeof nonce === 'string' || Object.values(OUTCOMES).some(outcome => outcome.code === code)
}

const ANSWER_MS = 3000

/** @param proxies must send a PROXY protocol header, also this machine if it is one. @returns JSON; undefined if none comes in ANSWER_MS */
async function ask({ host, port }: ListenAddress, path: string, headers = {}, proxies?: AddressSet) {
  const socket = connect(port, host)
  try {
    const signal = AbortSignal.timeout(ANSWER_MS)
    await once(socket, 'connect', { signal }) // a port whose queue is full takes no connection
    if (proxies?.has(parseAddress(socket.localAddress!)!)) socket.write('PROXY UNKNOWN\r\n')
    const request = get({ path, headers, createConnection: () => socket, signal })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return JSON.parse((await response.toArray()).join('')) as Readonly<Record<string, unknown>>
  } catch {
    return undefined
  } finally {
    socket.destroy()
  }
}
