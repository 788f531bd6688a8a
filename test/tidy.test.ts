/** Rules about the tree itself. (Function and file lengths are the linter's.) */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { parseConfig } from '../src/config.ts'
import { OUTCOMES } from '../src/domain/outcome.ts'
import { SCORE_WEIGHTS } from '../src/domain/score.ts'
import { SETTING_GROUPS, SETTINGS, type Setting, type SettingName } from '../src/settings.ts'

const ROOT = new URL('..', import.meta.url).pathname
const SRC = join(ROOT, 'src')
const readme = () => readFileSync(join(ROOT, 'README.md'), 'utf8')

function filesOf(folder: string, extension: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith(extension))
    .map(name => join(folder, name))
}

/** Relative imports of a file, as paths below src/; packages as they are written. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/^(?:import|export)[^'\n]*(?:\n[^'\n]*)*?from '([^']+)'/gm)].map(
    ([, specifier]) =>
      specifier!.startsWith('.') ? relative(SRC, resolve(dirname(file), specifier!)) : specifier!,
  )
}

/** What the files of a folder may import of src/. */
const ALLOWED: Record<string, RegExp> = {
  protocol: /^protocol\//,
  domain: /^(domain|protocol)\//,
  store: /^(store|domain|protocol)\/|^config\.ts$/,
  endpoints: /^(endpoints|domain|protocol|http)\/|^store\/(store|site-directory|load-tracker|key-uses)\.ts$/,
  http: /^(http|endpoints|domain|protocol)\/|^store\/store\.ts$/,
  demo: /^(demo|http|domain|protocol)\/|^store\/store\.ts$/,
}

test('arrows point one way: protocol <- domain <- store, endpoints <- http/routes', () => {
  for (const [folder, allowed] of Object.entries(ALLOWED)) {
    const files = filesOf(join(SRC, folder), '.ts')
    assert.ok(files.length > 0)
    for (const file of files) {
      for (const imported of importsOf(file)) {
        const isOurs = imported.endsWith('.ts')
        if (isOurs) assert.match(imported, allowed, `${relative(ROOT, file)} imports ${imported}`)
        if (folder === 'protocol') assert.ok(isOurs, `${relative(ROOT, file)} imports ${imported}`)
      }
    }
  }
})

test('what runs in browsers imports nothing but the widget and the protocol', () => {
  const files = filesOf(join(SRC, 'widget'), '.ts').filter(
    file => !/^(build|kernel)\//.test(relative(join(SRC, 'widget'), file)), // these run when it is built
  )
  assert.ok(files.length > 0)
  for (const file of files) {
    for (const imported of importsOf(file)) {
      assert.match(
        imported,
        /^(widget\/(?!build\/|kernel\/)|protocol\/)/,
        `${relative(ROOT, file)} imports ${imported}`,
      )
    }
  }
})

test('the domain has no I/O, clock or randomness of its own', () => {
  for (const file of filesOf(join(SRC, 'domain'), '.ts')) {
    const text = readFileSync(file, 'utf8')
    assert.doesNotMatch(
      text,
      /Date\.now|Math\.random|randomBytes|randomFill|performance\.now|setTimeout|process\./,
      file,
    )
    for (const imported of importsOf(file)) {
      if (!imported.endsWith('.ts'))
        assert.match(imported, /^node:(crypto|net)$/, `${file} imports ${imported}`)
    }
  }
})

test('only the exchange, and what reads for it, touches uWebSockets.js requests and responses', () => {
  const touching = filesOf(SRC, '.ts').filter(file => importsOf(file).includes('uWebSockets.js'))
  assert.deepEqual(touching.map(file => relative(SRC, file)).sort(), [
    'http/exchange.ts',
    'http/listener.ts',
    'http/request-headers.ts',
    'http/routes.ts',
  ])
  const routes = readFileSync(join(SRC, 'http/routes.ts'), 'utf8')
  assert.doesNotMatch(routes, /\b(response|request)\.\w/, 'routes.ts only passes them on')
})

test('each Lua operation names the number of its keys, has a header, and is loaded', () => {
  const loader = readFileSync(join(SRC, 'store/redis/scripts.ts'), 'utf8')
  for (const file of filesOf(join(SRC, 'store/redis/lua'), '.lua')) {
    const text = readFileSync(file, 'utf8')
    const name = file.slice(file.lastIndexOf('/') + 1, -'.lua'.length)
    assert.ok(loader.includes(`'${name}'`), `${name} is not loaded`)
    assert.ok(text.startsWith('--'), name)
    if (/-[0-9n]$/.test(name))
      for (const part of ['KEYS', 'ARGV', 'returns'])
        assert.ok(text.includes(`-- ${part}`), `${name}: ${part}`)
  }
})

test('versions are pinned exactly, and every dependency is explained in the README', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const versions: Record<string, string> = { ...manifest.dependencies, ...manifest.devDependencies }
  for (const [name, version] of Object.entries(versions)) {
    assert.match(version, /^(npm:[\w-]+@)?\d+\.\d+\.\d+$/, name)
    assert.ok(readme().includes(`\`${name}\``), `the README does not explain ${name}`)
  }
})

/** A setting as the README lists it: the same words as in `powgate serve --help`. */
function settingRow(name: SettingName): string {
  const { fallback, expects, about }: Setting = SETTINGS[name]
  const defaultText = name === 'POWGATE_WORKERS' ? 'cores' : fallback === '' ? '-' : `\`${fallback}\``
  return `| \`${name}\` | ${defaultText} | ${name === 'REDIS_URL' ? 'see below' : expects} | ${about} |`
}

test('the README has no text that was to be filled in later', () => {
  assert.doesNotMatch(readme(), /@\w*@|TODO|FIXME|TBD/)
})

test('the README: every block of code ends, and every link within it leads to a heading', () => {
  const headings = new Set<string>()
  const links: string[] = []
  let block: string | undefined
  for (const [index, line] of readme().split('\n').entries()) {
    const fence = /^ *```(\w*)$/.exec(line)
    if (fence === null)
      assert.doesNotMatch(line, /```/, `line ${index + 1}: a fence stands alone on its line`)
    else if (block === undefined) block = `line ${index + 1}`
    else {
      assert.equal(fence[1], '', `line ${index + 1}: a block begins in that of ${block}`)
      block = undefined
    }
    if (block !== undefined) continue
    const heading = /^#+ (.*)$/.exec(line)
    if (heading !== null) {
      // As code hosts make them.
      const words = heading[1]!.toLowerCase().replace(/[^\w\- ]/g, '')
      headings.add(words.replaceAll(' ', '-'))
    }
    links.push(...Array.from(line.matchAll(/\]\(#([^)]+)\)/g), ([, anchor]) => anchor!))
  }
  assert.equal(block, undefined, `the block of ${block} does not end`)
  assert.ok(links.length > 50)
  for (const anchor of links) assert.ok(headings.has(anchor), `#${anchor} is no heading`)
})

test('every default is what its setting expects', () => {
  const defaults = Object.entries<Setting>(SETTINGS).map(([name, { fallback }]) => [name, fallback])
  assert.doesNotThrow(() =>
    parseConfig(Object.fromEntries(defaults.filter(([, fallback]) => fallback !== ''))),
  )
})

test('every setting is in one group of the help', () => {
  const grouped = Object.values(SETTING_GROUPS).flat()
  assert.deepEqual([...grouped].sort(), Object.keys(SETTINGS).sort())
})

test('the README lists every setting with its default, every outcome code, and every score weight', () => {
  const text = readme()
  const rows = text
    .split('\n')
    .filter(line => /^\| `(HOST|PORT|REDIS_URL|LOG_LEVEL|POWGATE_[A-Z0-9_]+)` \|/.test(line))
  assert.deepEqual(
    rows,
    Object.keys(SETTINGS).map(name => settingRow(name as SettingName)),
  )
  for (const { status, code } of Object.values(OUTCOMES)) {
    assert.ok(text.includes(`| ${status} | \`${code}\` |`), `no row for ${status} ${code}`)
  }
  for (const [reason, weight] of Object.entries(SCORE_WEIGHTS)) {
    assert.ok(text.includes(`| \`${reason}\` | ${weight} |`), `no row for ${reason} ${weight}`)
  }
})
