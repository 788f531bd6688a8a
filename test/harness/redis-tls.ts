/** Certificates for Redis servers of the tests, made by the openssl program: an authority, a server, a client. */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDir } from './temporary.ts'

export class Certificates {
  readonly dir = temporaryDir('tls')
  readonly ca = join(this.dir, 'ca.crt')
  readonly serverCert = join(this.dir, 'server.crt')
  readonly serverKey = join(this.dir, 'server.key')
  readonly clientCert = join(this.dir, 'client.crt')
  readonly clientKey = join(this.dir, 'client.key')
  readonly #clientsMustShow: boolean

  /** @param names of the server, as openssl writes them @param clientsMustShow whether servers refuse clients without a certificate */
  constructor({ names, clientsMustShow = false }: { names: string; clientsMustShow?: boolean }) {
    this.#clientsMustShow = clientsMustShow
    const { dir } = this
    newKey(join(dir, 'ca.key'))
    openssl(
      ...['req', '-x509', '-new', '-key', join(dir, 'ca.key'), '-days', '2'],
      ...['-subj', '/CN=test authority', '-out', this.ca],
    )
    this.#certify('server', `subjectAltName=${names}\n`)
    this.#certify('client', 'subjectAltName=DNS:powgate.client\n')
  }

  #certify(name: string, extensions: string): void {
    const { dir } = this
    const [key, request] = [join(dir, `${name}.key`), join(dir, `${name}.csr`)]
    const extensionFile = join(dir, `${name}.ext`)
    newKey(key)
    writeFileSync(extensionFile, extensions)
    openssl('req', '-new', '-key', key, '-subj', `/CN=${name}`, '-out', request)
    const signer = ['-CA', this.ca, '-CAkey', join(dir, 'ca.key'), '-CAcreateserial']
    openssl(
      ...['x509', '-req', '-in', request, ...signer, '-days', '2'],
      ...['-extfile', extensionFile, '-out', join(dir, `${name}.crt`)],
    )
  }

  get serverSettings(): Record<string, string> {
    return {
      'tls-cert-file': this.serverCert,
      'tls-key-file': this.serverKey,
      'tls-ca-cert-file': this.ca,
      'tls-auth-clients': this.#clientsMustShow ? 'yes' : 'no',
      'tls-replication': 'yes',
    }
  }

  get cliArgs(): string[] {
    return ['--tls', '--cacert', this.ca, '--cert', this.clientCert, '--key', this.clientKey]
  }

  /** Options for the tests' own clients, which do not verify the server. */
  get clientOptions() {
    return {
      cert: readFileSync(this.clientCert),
      key: readFileSync(this.clientKey),
      rejectUnauthorized: false,
    }
  }

  get settings(): Record<string, string> {
    const own = { POWGATE_REDIS_TLS_CERT: this.clientCert, POWGATE_REDIS_TLS_KEY: this.clientKey }
    return { POWGATE_REDIS_TLS_CA: this.ca, ...(this.#clientsMustShow && own) }
  }
}

function newKey(file: string): void {
  openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', file)
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
