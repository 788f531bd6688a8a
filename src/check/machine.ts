/** The part of `powgate check` about the machine: ports, limits of the process, settings of the kernel. */

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Config } from '../config/config.ts'
import { ListenError, type Place, tryPort } from '../config/ports.ts'
import { DEMO_SITE_KEY } from '../demo/site.ts'
import { type AddressSet, parseAddress } from '../domain/address.ts'
import { OUTCOMES } from '../domain/outcome.ts'
import type { SiteRecord } from '../domain/site.ts'
import { migratesConnections, openFilesMax } from '../http/open-files.ts'
import type { CheckResults } from './findings.ts'

/** Open files that a worker needs besides its connections: for the store, the log and libraries. */
const FILES_MIN = 4096

/** @param sites of the store; none if the store cannot be used */
export async function checkMachine(
  config: Config,
  sites: readonly SiteRecord[],
  findings: CheckResults,
): Promise<void> {
  await checkPorts(config, sites, findings)
  const files = openFilesMax('self')
  if (files < FILES_MIN)
    findings.warnings.push(
      `a worker may open ${files} files, connections among them: raise it (ulimit -n, LimitNOFILE)`,
    )
  if (migratesConnections() === false)
    findings.notes.push(
      'net.ipv4.tcp_migrate_req is 0: connections that arrive at the very moment a worker is replaced can be reset; set it to 1',
    )
}

async function checkPorts(
  config: Config,
  sites: readonly SiteRecord[],
  findings: CheckResults,
): Promise<void> {
  const { adminHost: host, adminPort: port } = config
  const isRunning = await isHeld(config, '', findings, () => isThisService(config, sites))
  if (port !== undefined)
    await isHeld({ host, port }, 'POWGATE_ADMIN_', findings, async place => {
      return isRunning && typeof (await ask(place, '/healthz'))?.ok === 'boolean'
    })
}

/** Whether the checked service itself listens on this port. Another program there is a problem. */
async function isHeld(
  place: Place,
  prefix: '' | 'POWGATE_ADMIN_',
  findings: CheckResults,
  isOurs: (place: Place) => Promise<boolean>,
): Promise<boolean> {
  const error = await tryPort(place).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error,
  )
  if (error === undefined) return false
  const isRunning = error.code === 'EADDRINUSE' && (await isOurs(place))
  if (isRunning) findings.notes.push(`port ${place.port} is in use by this service, which runs already`)
  else findings.problems.push(new ListenError(place, error, prefix).message)
  return isRunning
}

/** A service that knows one of the store's random site keys uses this store. Without a site, any powgate counts. */
async function isThisService(config: Config, sites: readonly SiteRecord[]): Promise<boolean> {
  const site = sites.find(({ siteKey }) => siteKey !== DEMO_SITE_KEY)
  const headers = site === undefined ? {} : { 'X-Site-Key': site.siteKey }
  const proxies = config.proxyProtocol ? config.trustedProxies : undefined
  const { nonce, code } = (await ask(config, '/challenge', headers, proxies)) ?? {}
  if (site !== undefined && code === OUTCOMES['site-unknown'].code) return false
  return typeof nonce === 'string' || Object.values(OUTCOMES).some(outcome => outcome.code === code)
}

const ASK_MS = 3000

/**
 * @param proxies addresses from which a connection starts with a PROXY protocol header
 * @returns undefined unless the answer is JSON
 */
async function ask({ host, port }: Place, path: string, headers = {}, proxies?: AddressSet) {
  try {
    const socket = connect(port, host)
    await once(socket, 'connect')
    if (proxies?.has(parseAddress(socket.localAddress!)!)) socket.write('PROXY UNKNOWN\r\n')
    const signal = AbortSignal.timeout(ASK_MS)
    const request = get({ path, headers, createConnection: () => socket, signal })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return JSON.parse((await response.toArray()).join('')) as Readonly<Record<string, unknown>>
  } catch {
    return undefined
  }
}
