import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { systemErrorText } from '../words/system-error.ts'
import type { Config } from './config.ts'

export type ListenAddress = Pick<Config, 'host' | 'port'>

const [ABOUT_PORT, ABOUT_HOST] = [/^(EADDRINUSE|EACCES)$/, /^(EADDRNOTAVAIL|EAFNOSUPPORT|ENOTFOUND)$/]

export class ListenError extends Error {
  override readonly name = 'ListenError'

  constructor(
    { host, port }: ListenAddress,
    error?: NodeJS.ErrnoException,
    prefix: '' | 'POWGATE_ADMIN_' = '',
  ) {
    const { code = '' } = error ?? {}
    const names = ABOUT_PORT.test(code) ? ['PORT'] : ABOUT_HOST.test(code) ? ['HOST'] : ['HOST', 'PORT']
    const variables = names.map(name => prefix + name).join(', ')
    const cause =
      error === undefined ? 'the address cannot be used or the port is taken' : systemErrorText(error)
    super(`${variables}: cannot listen on ${host}:${port}: ${cause}`)
  }
}

/** Returns the port; a free one for 0. Workers' SO_REUSEPORT would make another service's port seem free. */
export async function tryPort({ host, port }: ListenAddress): Promise<number> {
  const probe = createServer().listen({ host, port, exclusive: true })
  await once(probe, 'listening')
  const { port: taken } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return taken
}
