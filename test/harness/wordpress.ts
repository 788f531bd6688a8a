/** WordPress as Debian packages it, on MariaDB and PHP's own server, behind nginx, with the plugin's zip unpacked. */

import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, PATIENCE_MS } from './eventually.ts'
import { freePort, untilAccepting } from './ports.ts'
import { endProcess, hasEnded, leftovers } from './processes.ts'
import { FrontProxy, PROXY_ADDRESS } from './proxies.ts'
import { temporaryDir } from './temporary.ts'

const CODE = '/usr/share/wordpress'
const SCRIPT = new URL('../../scripts/wordpress.ts', import.meta.url).pathname
export const PASSWORD = 'a password of the tests'

export class WordPress {
  readonly #dir = temporaryDir('wordpress')
  readonly #socket = join(this.#dir, 'sql')
  readonly #logPath = join(this.#dir, 'php.log')
  #port = 0

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Installs WordPress with the user `admin` and powgate's plugin active, and serves it. @param testPlugin PHP that runs beside it */
  async start(testPlugin: string): Promise<void> {
    this.#port = await freePort()
    chmodSync(this.#dir, 0o755) // nginx's worker is another user
    await this.#startDatabase()
    this.#unpack(testPlugin)
    const install = `wp_install('Blog', 'admin', 'admin@example.com', true, '', '${PASSWORD}');`
    const early = "define('WP_INSTALLING', true);" // or it would redirect to its installer
    this.php(`require ABSPATH . 'wp-admin/includes/upgrade.php'; ${install}`, early)
    // The theme that Debian's package has.
    const activate = `switch_theme('twentytwentythree'); return activate_plugin('powgate/powgate.php');`
    const problem = this.php(`require ABSPATH . 'wp-admin/includes/plugin.php'; ${activate}`)
    assert.equal(problem, null)
    await this.#serve()
  }

  async #startDatabase(): Promise<void> {
    const data = join(this.#dir, 'data')
    const user = process.getuid?.() === 0 ? ['--user=root'] : []
    const options = ['--no-defaults', `--datadir=${data}`, ...user]
    execFileSync('mariadb-install-db', [...options, '--auth-root-authentication-method=normal'], {
      stdio: 'ignore',
    })
    const more = [`--socket=${this.#socket}`, '--skip-networking', '--skip-grant-tables']
    const child = spawn('mariadbd', [...options, ...more], { stdio: 'ignore' })
    leftovers.add({ stop: () => endProcess(child) })
    const create = ['--no-defaults', `--socket=${this.#socket}`, '-e', 'create database wordpress']
    await eventually(PATIENCE_MS, 'MariaDB answers', () => spawnSync('mariadb', create).status === 0)
  }

  /** Copies WordPress, adds powgate's plugin from the zip that its script makes, and writes the configuration. */
  #unpack(testPlugin: string): void {
    const root = join(this.#dir, 'root')
    execFileSync('cp', ['-rL', CODE, root]) // the files themselves, where Debian has links to /etc
    const content = join(root, 'wp-content')
    for (const name of ['plugins', 'mu-plugins']) mkdirSync(join(content, name), { recursive: true })
    const zip = join(this.#dir, 'powgate.zip')
    execFileSync(process.execPath, ['--import', 'tsx', SCRIPT, zip], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    execFileSync('python3', ['-m', 'zipfile', '-e', zip, join(content, 'plugins')])
    writeFileSync(join(content, 'mu-plugins/tests.php'), `<?php\n${testPlugin}`)
    // Nothing outside of this machine is asked for updates.
    const config = `<?php
      ini_set('log_errors', 1);
      ini_set('display_errors', 0);
      ini_set('error_log', '${this.#logPath}');
      define('DB_NAME', 'wordpress');
      define('DB_USER', 'root');
      define('DB_PASSWORD', '');
      define('DB_HOST', 'localhost:${this.#socket}');
      define('WP_HOME', '${this.url}');
      define('WP_SITEURL', '${this.url}');
      define('DISABLE_WP_CRON', true);
      define('WP_HTTP_BLOCK_EXTERNAL', true);
      define('WP_ACCESSIBLE_HOSTS', '127.0.0.1');
      $table_prefix = 'wp_';
      defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
      require_once ABSPATH . 'wp-settings.php';`
    writeFileSync(join(root, 'wp-config.php'), config)
  }

  async #serve(): Promise<void> {
    const port = await freePort()
    const child = spawn('php', ['-S', `127.0.0.1:${port}`, '-t', join(this.#dir, 'root')], {
      env: { PATH: process.env.PATH }, // the plugin finds its settings in WordPress, and not here
      stdio: 'ignore',
    })
    leftovers.add({ stop: () => endProcess(child) })
    await untilAccepting(port, () => hasEnded(child))
    // The plugin reads visitors from X-Forwarded-For, so PHP's REMOTE_ADDR, PROXY_ADDRESS, is nobody's. An address with `?cached=1` is
    // answered from nginx's cache, whatever the page's headers say.
    await FrontProxy.run(
      'nginx',
      this.#port,
      `
  proxy_cache_path ${this.#dir}/cache keys_zone=pages:1m;
  server {
    listen 127.0.0.1:${this.#port};
    set $fresh 1;
    if ($arg_cached) { set $fresh 0; }
    location / {
      proxy_pass http://127.0.0.1:${port};
      proxy_bind ${PROXY_ADDRESS};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_cache pages;
      proxy_cache_valid 200 10m;
      proxy_ignore_headers Cache-Control Expires Set-Cookie;
      proxy_cache_bypass $fresh;
      proxy_no_cache $fresh;
      add_header X-Cache $upstream_cache_status;
    }
  }`,
    )
  }

  /** What PHP has logged since the last call. */
  takeLog(): string {
    const text = existsSync(this.#logPath) ? readFileSync(this.#logPath, 'utf8') : ''
    rmSync(this.#logPath, { force: true })
    return text
  }

  /** Runs code in WordPress. @param early runs before that is loaded @returns what the code returns, through JSON */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came back
  php(code: string, early = ''): any {
    const load = `require '${this.#dir}/root/wp-load.php'; echo "\\0" . json_encode((function () { ${code} })());`
    const { stdout, stderr } = spawnSync('php', ['-r', `${early} ${load}`], { encoding: 'utf8' })
    const json = stdout.split('\0')[1]
    if (json === undefined) throw new Error(`${code}\n${stdout}\n${stderr}`)
    return JSON.parse(json)
  }
}
