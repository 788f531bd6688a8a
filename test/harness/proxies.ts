/** Real nginx, HAProxy, Apache and Caddy on loopback, in front of a service; and the samples of the documentation for them. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, untilAccepting } from './ports.ts'
import { endProcess, hasEnded, leftovers } from './processes.ts'
import { temporaryDir } from './temporary.ts'

/** The address from which proxies call the service; no client of the tests uses it. */
export const PROXY_ADDRESS = '127.0.0.2'

export type ProxyKind =
  /** X-Forwarded-For, by nginx, which joins its own value to the client's. */
  | 'nginx'
  /** X-Forwarded-For, by HAProxy, which adds a line of its own. */
  | 'haproxy'
  /** HTTP, and a PROXY protocol v2 header on every connection to the service. */
  | 'haproxy-v2'
  /** The client's bytes unchanged, after a PROXY protocol v2 header. */
  | 'haproxy-tcp'
  /** X-Forwarded-For, by Apache, which joins its own value to the client's. */
  | 'apache'
  /** X-Forwarded-For, by Caddy, which replaces the client's. */
  | 'caddy'

/** The settings with which a service trusts the proxies. */
export const BEHIND: Readonly<Record<ProxyKind, Readonly<Record<string, string>>>> = {
  nginx: { POWGATE_TRUSTED_PROXIES: PROXY_ADDRESS },
  haproxy: { POWGATE_TRUSTED_PROXIES: PROXY_ADDRESS },
  'haproxy-v2': { POWGATE_TRUSTED_PROXIES: PROXY_ADDRESS, POWGATE_PROXY_PROTOCOL: 'on' },
  'haproxy-tcp': { POWGATE_TRUSTED_PROXIES: PROXY_ADDRESS, POWGATE_PROXY_PROTOCOL: 'on' },
  apache: { POWGATE_TRUSTED_PROXIES: PROXY_ADDRESS },
  caddy: { POWGATE_TRUSTED_PROXIES: '127.0.0.1' },
}

/** What a distribution's own configuration files say before those of a site. */
export const apacheBase = (port: number) => `
ServerRoot /usr/lib/apache2
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule authz_host_module modules/mod_authz_host.so
LoadModule headers_module modules/mod_headers.so
LoadModule socache_shmcb_module modules/mod_socache_shmcb.so
LoadModule ssl_module modules/mod_ssl.so
LoadModule proxy_module modules/mod_proxy.so
LoadModule proxy_http_module modules/mod_proxy_http.so
ErrorLog /dev/null
User www-data
Group www-data
`

const apacheConfig = (port: number, upstream: number) => `${apacheBase(port)}
ProxySourceAddress ${PROXY_ADDRESS}
ProxyPreserveHost On
ProxyPass / http://127.0.0.1:${upstream}/ ttl=6
`

/** Caddy 2.6 cannot choose the address from which it calls the service. */
const caddyConfig = (port: number, upstream: number) => `{
  admin off
  auto_https off
}
http://:${port} {
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:${upstream} {
    transport http {
      keepalive 6s
    }
  }
}
`

/** @param http what stands in that block */
const nginxConfig = (dir: string, http: string) => `
daemon off;
worker_processes 1;
pid ${dir}/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi;
  uwsgi_temp_path ${dir}/uwsgi;
  scgi_temp_path ${dir}/scgi;
${http}
}
`

/** @param idle how long a connection to the service is kept unused; the service ends it after 8 to 12 s */
const nginxServer = (port: number, upstream: number, idle: string) => `
  upstream powgate {
    server 127.0.0.1:${upstream};
    keepalive 64;
    keepalive_timeout ${idle};
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    keepalive_requests 1000000;
    location / {
      proxy_pass http://powgate;
      proxy_bind ${PROXY_ADDRESS};
      proxy_next_upstream_timeout 5s;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Request-Id $request_id;
    }
  }
`

/** @param backend the rest of the section of the backend */
const haproxyConfig = (port: number, mode: 'http' | 'tcp', idle: string, backend: string) => `
global
  maxconn 4000
  nbthread 1
defaults
  mode ${mode}
  timeout connect 5s
  timeout client ${idle}
  timeout server ${idle}
frontend public
  bind 127.0.0.1:${port}
  default_backend powgate
backend powgate${backend}
`

/** How HAProxy calls the service. */
const HAPROXY_SERVER = {
  haproxy: 'pool-purge-delay 2s',
  'haproxy-v2': 'pool-purge-delay 2s send-proxy-v2',
  'haproxy-tcp': 'send-proxy-v2',
}
/** What the section of the backend says besides, where clients are told by headers. */
const HAPROXY_HEADERS = `
  option forwardfor
  http-request set-header X-Request-Id %[uuid()]`

function configOf(kind: ProxyKind, port: number, upstream: number, nginxIdle: string): string {
  if (kind === 'nginx') return nginxServer(port, upstream, nginxIdle)
  if (kind === 'apache') return apacheConfig(port, upstream)
  if (kind === 'caddy') return caddyConfig(port, upstream)
  const mode = kind === 'haproxy-tcp' ? 'tcp' : 'http'
  // A relayed TCP connection is idle whenever the client is idle.
  const idle = mode === 'tcp' ? '8s' : '30s'
  const headers = kind === 'haproxy' ? HAPROXY_HEADERS : ''
  const server = `\n  server one 127.0.0.1:${upstream} source ${PROXY_ADDRESS} ${HAPROXY_SERVER[kind]}`
  return haproxyConfig(port, mode, idle, headers + server)
}

type Program = 'nginx' | 'haproxy' | 'apache2' | 'caddy'

function commandOf(program: Program, config: string, dir: string): string[] {
  const path = join(dir, 'config')
  writeFileSync(path, program === 'nginx' ? nginxConfig(dir, config) : config)
  if (program === 'nginx') return ['-e', 'stderr', '-p', dir, '-c', path]
  if (program === 'apache2') return ['-D', 'FOREGROUND', '-f', path, '-c', `PidFile ${dir}/pid`]
  if (program === 'caddy') return ['run', '--adapter', 'caddyfile', '--config', path]
  return ['-db', '-f', path]
}

export class FrontProxy {
  readonly port: number
  readonly url: string
  readonly #dir = temporaryDir('proxy')
  readonly #process: ChildProcess
  output = ''

  private constructor(program: Program, port: number, config: string) {
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    chmodSync(this.#dir, 0o755) // nginx's worker is another user
    this.#process = spawn(program, commandOf(program, config, this.#dir), {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#process.stdout!, this.#process.stderr!])
      stream.on('data', (chunk: Buffer) => (this.output += chunk))
    this.#process.once('error', error => (this.output += `${program}: ${error.message}\n`))
  }

  /** @param service must trust the proxy: see `BEHIND` @param nginxIdle how long nginx keeps a connection to it unused */
  static async start(kind: ProxyKind, service: { readonly port: number }, nginxIdle = '8s') {
    const port = await freePort()
    const program = kind === 'apache' ? 'apache2' : kind === 'nginx' || kind === 'caddy' ? kind : 'haproxy'
    return FrontProxy.run(program, port, configOf(kind, port, service.port, nginxIdle))
  }

  /** @param config of one's own, that listens on the port; of nginx, what stands in its block `http` */
  static async run(program: Program, port: number, config: string): Promise<FrontProxy> {
    const proxy = new FrontProxy(program, port, config)
    leftovers.add(proxy)
    try {
      await untilAccepting(port, () => proxy.#hasEnded)
      return proxy
    } catch (error) {
      await proxy.stop()
      throw new Error(`${(error as Error).message}:\n${proxy.output}`)
    }
  }

  get #hasEnded(): boolean {
    return this.#process.pid === undefined || hasEnded(this.#process)
  }

  /** nginx reads its configuration again. */
  reload(): void {
    this.#process.kill('SIGHUP')
  }

  async stop(): Promise<void> {
    leftovers.delete(this)
    if (!this.#hasEnded) await endProcess(this.#process)
  }
}

const ROOT = new URL('../..', import.meta.url).pathname
const DOCS = join(ROOT, 'docs')

/** The one block of a language in README.md and docs/ that has this text, as readers copy it. */
export function sample(language: string, text: string): string {
  const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.md'))
  const files = [join(ROOT, 'README.md'), ...pages.map(name => join(DOCS, name))]
  const blocks = files.flatMap(file =>
    Array.from(readFileSync(file, 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)),
  )
  const found = blocks.filter(([, name, block]) => name === language && block!.includes(text))
  assert.equal(found.length, 1, `${found.length} blocks of ${language} have ${text}`)
  return found[0]![2]!
}

/** The sample with names of this machine, each put in once, for the longest name that fits; none of the documentation's is left. */
export function adapted(text: string, names: Readonly<Record<string, string>>): string {
  const longestFirst = Object.keys(names).sort((a, b) => b.length - a.length)
  const patterns = longestFirst.map(name => name.replaceAll(/[.*+?()[\]{}|\\^$]/g, '\\$&'))
  const result = text.replaceAll(new RegExp(patterns.join('|'), 'g'), name => names[name]!)
  assert.doesNotMatch(result, /\b10\.0\.0\.|\b(8080|443|9090)\b|\/etc\//)
  return result
}
