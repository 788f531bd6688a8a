/** Claims a port, says why powgate cannot listen, and tells what happens to connections at a listener that closes. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { hostAndPort } from '../addresses/address.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'
import type { Config } from './config.ts'

export type ListenAddress = Pick<Config, 'host' | 'port'>

const PORT_ERRORS = /^(EADDRINUSE|EACCES)$/
const HOST_ERRORS = /^(EADDRNOTAVAIL|EAFNOSUPPORT|ENOTFOUND)$/

/** @param error undefined from uWebSockets.js, which does not tell the cause. @param prefix of the variables that set the address */
export function listenError(
  address: ListenAddress,
  error?: NodeJS.ErrnoException,
  prefix: '' | 'POWGATE_ADMIN_' = '',
): OperatorError {
  const { code = '' } = error ?? {}
  const names = PORT_ERRORS.test(code) ? ['PORT'] : HOST_ERRORS.test(code) ? ['HOST'] : ['HOST', 'PORT']
  const variables = names.map(name => prefix + name).join(', ')
  const cause =
    error === undefined ? 'the address cannot be used or the port is taken' : systemErrorText(error)
  return new OperatorError(`${variables}: cannot listen on ${hostAndPort(address)}: ${cause}`)
}

/**
 * Returns the port, or a free one for port 0. Rejects if it is taken, even by workers: their SO_REUSEPORT lets listeners share a
 * port only if both set it, and this probe does not.
 */
export async function tryPort({ host, port }: ListenAddress): Promise<number> {
  const probe = createServer().listen({ host, port, exclusive: true })
  await once(probe, 'listening')
  const { port: taken } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return taken
}

/** Workers of a primary process that was killed end within this time, and have its port until then. */
const CLAIM_MS = 1500
const CLAIM_RETRY_MS = 100

/**
 * Gives the port that workers will listen on, once nobody has it. They set SO_REUSEPORT, and so would share it with another
 * service without an error. `tryPort` finds a service that listens; the lock finds one that is starting, with the same HOST.
 *
 * @returns `release`, to be called when the workers listen
 * @throws OperatorError
 */
export async function claimPort(config: ListenAddress): Promise<{ port: number; release: () => void }> {
  const giveUpAt = performance.now() + CLAIM_MS
  for (;;) {
    try {
      const port = await tryPort(config)
      return { port, release: await lock(`\0powgate ${config.host}:${port}`) }
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
      if (!isTaken || performance.now() > giveUpAt) throw listenError(config, error as Error)
      await new Promise(resolve => setTimeout(resolve, CLAIM_RETRY_MS))
    }
  }
}

/**
 * Takes an abstract name of Unix sockets: each network namespace has its own, and the kernel frees it when this process ends. Where
 * no such socket is allowed, as by some systemd units, there is no lock. @returns what gives the name back
 */
async function lock(name: string): Promise<() => void> {
  const server = createServer(peer => peer.destroy()).unref()
  try {
    await once(server.listen(name), 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw error
    return () => {}
  }
  server.on('error', () => {}) // whoever connects while no file can be opened must not end this process
  return () => void server.close()
}

/** Tells whether connections waiting at a closing listener move to another on its port; undefined before Linux 5.14. */
export function migratesConnections(): boolean | undefined {
  try {
    return readFileSync('/proc/sys/net/ipv4/tcp_migrate_req', 'latin1').trim() !== '0'
  } catch {
    return undefined
  }
}
