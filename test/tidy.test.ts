/**
 * Rules about the source tree: who may import whom, what Lua files and comments look like, versions and binaries. They read the files'
 * text by patterns. The linter checks lengths of functions and files, docs.test.ts the documentation.
 */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { parseConfig } from '../src/config/config.ts'
import { SETTINGS, type Setting } from '../src/config/settings.ts'
import { OUTCOMES } from '../src/domain/outcome.ts'
import { BATCHES, NOTE_HOST } from '../src/store/redis/scripts.ts'
import { words } from './harness/values.ts'

const ROOT = new URL('..', import.meta.url).pathname
const SRC = join(ROOT, 'src')

function filesOf(folder: string, extension: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith(extension))
    .map(name => join(folder, name))
}

/** What a file imports, also at run time: files as paths below a folder, packages as they are written. */
function importsOf(file: string, folder = SRC): string[] {
  const text = readFileSync(file, 'utf8')
  const forms = [
    /^(?:import|export)[^'\n]*(?:\n[^'\n]*)*?from '([^']+)'/gm, // import { a } from 'b', also over several lines
    /^import '([^']+)'/gm,
    /\bimport\('(\.[^']+)'\)/gm, // await import('./b.ts')
  ]
  const specifiers = forms.flatMap(form => Array.from(text.matchAll(form), ([, specifier]) => specifier!))
  return specifiers.map(name =>
    name.startsWith('.') ? relative(folder, resolve(dirname(file), name)) : name,
  )
}

/** Which entries of src/ an entry imports: all, and no other. An entry is a folder, or a file at the root. Imports make no circle. */
const IMPORTS: Readonly<Record<string, string>> = {
  protocol: '',
  packages: '',
  addresses: '',
  domain: 'addresses protocol',
  words: 'domain',
  config: 'addresses domain protocol words',
  store: 'config domain packages words',
  http: 'addresses domain packages protocol words',
  endpoints: 'addresses domain http protocol store',
  openapi: 'domain http packages protocol',
  demo: 'addresses config domain http protocol store',
  widget: 'http protocol',
  log: 'addresses domain http packages',
  metrics: 'addresses config domain http protocol server-build.ts words',
  sites: 'addresses config demo domain log packages store version.ts words',
  check: 'addresses config dashboard demo domain process server-build.ts sites store version.ts words',
  explain: 'words',
  admin: 'addresses config domain log metrics version.ts',
  dashboard: 'admin config domain metrics process protocol store words',
  'version.ts': '',
  'server-build.ts': '',
  'routes.ts': 'domain endpoints http',
  'server.ts': 'config demo domain endpoints http log metrics openapi routes.ts store version.ts words',
  process: 'config demo domain endpoints log metrics server-build.ts server.ts store version.ts words',
  'main.ts': 'config process start.ts',
  'start.ts': 'admin config dashboard log metrics process sites store words',
  cli: 'addresses admin check config demo domain explain http log main.ts process protocol server-build.ts sites store version.ts words',
}

/** The same table of bench/; that its entries also import src/ and test/harness/ is not listed. */
const BENCH_IMPORTS: Readonly<Record<string, string>> = {
  report: '',
  'child-server.ts': '',
  'disturbance.ts': '',
  'peer-modules.d.ts': '',
  'packages.ts': '',
  micro: 'disturbance.ts report',
  http: 'child-server.ts disturbance.ts report',
  store: 'child-server.ts disturbance.ts report',
  solver: 'disturbance.ts packages.ts report',
  peers: 'child-server.ts http packages.ts report',
  compare: 'http micro report',
  simulator: 'report',
  'cli.ts': 'compare http micro peers simulator solver store',
}

const entryOf = (path: string) => path.split('/')[0]!

/** Which entries of a folder each of its entries imports. */
function importsTable(folder: string): Record<string, string> {
  const found: Record<string, Set<string>> = {}
  for (const file of codeOf(folder)) {
    const entry = entryOf(relative(folder, file))
    found[entry] ??= new Set()
    for (const imported of importsOf(file, folder)) {
      const isOther = /^[^.].*\.ts$/.test(imported) && entryOf(imported) !== entry
      if (isOther) found[entry].add(entryOf(imported))
      // Only src/packages/ imports these: a second copy of a package would have classes of its own.
      const isBundled = folder.endsWith('/src') && /^(ajv|ioredis|pino|typebox)($|\/)/.test(imported)
      if (isBundled && entry !== 'packages') found[entry].add(imported)
    }
  }
  const table = Object.entries(found).map(([entry, imports]) => [entry, [...imports].sort().join(' ')])
  return Object.fromEntries(table)
}

/** TypeScript files below a folder, without installed packages and what was built. */
const codeOf = (folder: string) =>
  filesOf(folder, '.ts').filter(file => !/(^|\/)(node_modules|dist)\//.test(relative(folder, file)))

test('entries of src/ and bench/ import what the tables say', () => {
  for (const [folder, table] of Object.entries({ src: IMPORTS, bench: BENCH_IMPORTS })) {
    const found = importsTable(join(ROOT, folder))
    for (const entry of Object.keys({ ...found, ...table })) {
      const about = `${folder}/${entry} imports "${found[entry]}"; the table in tidy.test.ts says "${table[entry]}"`
      assert.equal(found[entry], table[entry], about)
    }
  }
})

test('benches and tests share test/harness, and nothing else', () => {
  const allowed = {
    bench: /^(src|bench|test\/harness)\//,
    'test/harness': /^(src|test\/harness)\//,
    test: /^(?!bench\/)/,
  }
  for (const [folder, pattern] of Object.entries(allowed)) {
    for (const file of codeOf(join(ROOT, folder))) {
      if (/^test\/bench\//.test(relative(ROOT, file))) continue // the tests of the benches
      for (const imported of importsOf(file, ROOT))
        if (imported.endsWith('.ts'))
          assert.match(imported, pattern, `${relative(ROOT, file)} imports ${imported}, outside ${pattern}`)
    }
  }
})

test('endpoints, HTTP and the demo know the interface of the store, and neither store behind it', () => {
  for (const entry of ['endpoints', 'http', 'demo']) {
    // The interface, and what workers keep of any store: copies of sites, and when keys were used.
    const hidden = /^store\/(?!(store|site-directory|key-uses)\.ts$)/
    for (const file of filesOf(join(SRC, entry), '.ts')) {
      const found = importsOf(file).filter(imported => hidden.test(imported))
      assert.deepEqual(found, [], `${relative(ROOT, file)} imports what is a store's own`)
    }
  }
})

test('imports point one way: no circle of entries, and no circle of files in the whole tree', () => {
  const entries = new Map(Object.entries(IMPORTS).map(([entry, imports]) => [entry, imports.split(' ')]))
  assert.equal(circleOf(entries).join(', '), '', 'entries in a circle, and those that lead to it')
  const files = ['src', 'bench', 'test'].flatMap(folder => codeOf(join(ROOT, folder)))
  const imports = files.map(file => [file, importsOf(file).map(imported => resolve(SRC, imported))] as const)
  const circle = circleOf(new Map(imports)).map(file => relative(ROOT, file))
  assert.equal(circle.join(', '), '', 'files that import each other, and those that lead to them')
})

/** Nodes that stay when those without arrows to others are taken away, again and again: the circles, and what leads to them. */
function circleOf(arrows: ReadonlyMap<string, readonly string[]>): string[] {
  const left = new Map(arrows)
  for (let size = -1; size !== left.size; ) {
    size = left.size
    for (const [node, targets] of left) if (!targets.some(target => left.has(target))) left.delete(node)
  }
  return [...left.keys()]
}

test('what runs in browsers imports nothing but the widget and the protocol, and no package', () => {
  const files = ['widget', 'protocol']
    .flatMap(entry => filesOf(join(SRC, entry), '.ts'))
    .filter(file => !relative(SRC, file).startsWith('widget/build/')) // these run when it is built
  assert.ok(files.length > 0)
  for (const file of files) {
    const allowed = /^(widget\/(?!build\/)|protocol\/|#hashwx-script$)/
    for (const imported of importsOf(file))
      assert.match(imported, allowed, `${relative(ROOT, file)} imports ${imported}`)
  }
})

test('an unsupported Node.js is refused before main.ts and cli/main.ts import more than they need for signals and for the refusal of arguments', () => {
  for (const entry of ['main.ts', 'cli/main.ts']) {
    const text = readFileSync(join(SRC, entry), 'utf8')
    const [before = '', after] = text.split(/await import\('\S+\/process\/supported-platform\.ts'\)/)
    assert.ok(after, `${entry} does not look at the platform`)
    for (const [, imported] of before.matchAll(/import\('([^']+)'\)/g))
      assert.match(imported!, /\/(process\/early-signals|config\/config)\.ts$/)
    for (const [, imported] of text.matchAll(/^import .* from '([^']+)'/gm)) assert.match(imported!, /^node:/)
  }
})

test('addresses and the domain have no I/O, clock or randomness of their own', () => {
  for (const file of ['addresses', 'domain'].flatMap(entry => filesOf(join(SRC, entry), '.ts'))) {
    const impure = /Date\.now|Math\.random|randomBytes|randomFill|performance\.now|setTimeout|process\./
    const found = impure.exec(readFileSync(file, 'utf8'))?.[0]
    assert.equal(found, undefined, `${relative(ROOT, file)} has ${found}: such things are arguments`)
    for (const imported of importsOf(file))
      if (!imported.endsWith('.ts'))
        assert.match(imported, /^(node:(crypto|net)|#hashwx)$/, `${relative(ROOT, file)} imports ${imported}`)
  }
})

test('only the exchange, and what reads for it, touches uWebSockets.js requests and responses', () => {
  const touching = filesOf(SRC, '.ts').filter(file => importsOf(file).includes('uWebSockets.js'))
  const allowed = words('http/exchange.ts http/listener.ts http/request-headers.ts routes.ts')
  assert.deepEqual(touching.map(file => relative(SRC, file)).sort(), allowed)
  const routes = readFileSync(join(SRC, 'routes.ts'), 'utf8')
  assert.doesNotMatch(routes, /\b(response|request)\.\w/, 'routes.ts only passes them on')
})

test('each Lua operation names the number of its keys, has a header, and is loaded', () => {
  const loader = readFileSync(join(SRC, 'store/redis/scripts.ts'), 'utf8')
  for (const file of filesOf(join(SRC, 'store/redis/lua'), '.lua')) {
    const text = readFileSync(file, 'utf8')
    const name = file.slice(file.lastIndexOf('/') + 1, -'.lua'.length)
    assert.ok(loader.includes(`'${name}'`), `${name}.lua is not in store/redis/scripts.ts`)
    assert.ok(text.startsWith('--'), `${name}.lua does not begin with a comment`)
    const isOperation = /-[0-9n]$/.test(name) // ends with the number of its keys; others are parts of operations
    if (isOperation)
      for (const part of ['KEYS', 'ARGV', 'returns'])
        assert.ok(text.includes(`-- ${part}`), `the header of ${name}.lua does not explain ${part}`)
  }
})

test('each Lua file lists the locals that it has from files before it, and no other', () => {
  for (const { files } of [...Object.values(BATCHES), NOTE_HOST]) {
    /** Each local at the top level of the files so far, and the file that it is from. */
    const sources = new Map<string, string>()
    for (const file of files) {
      const text = readFileSync(join(SRC, `store/redis/lua/${file}.lua`), 'utf8')
      // A comment such as `-- From address.lua: first, second`, which may go on for some lines.
      const listed = [...text.matchAll(/^-- From (\S+)\.lua: (.*(?:\n-- {3}.*)*)/gm)].flatMap(
        ([, source, names]) => names!.match(/\w+/g)!.map(name => `${name} of ${source}`),
      )
      const code = text.replace(/--.*|'[^'\n]*'/g, '') // without comments and strings
      const named = new Set(code.match(/(?<![.\w])\w+/g)) // none that stands behind a dot, which is a field
      const used = [...sources].filter(([name]) => named.has(name))
      assert.deepEqual(listed.sort(), used.map(([name, source]) => `${name} of ${source}`).sort(), file)
      // `local a, b = 1, 2`, also without values or with a line break after a comma, or `local function a(b)`
      for (const [, names] of code.matchAll(/^local (?:function )?([\w,\s]+?)(?: =|[(]|(?<!,)$)/gm))
        for (const name of names!.match(/\w+/g)!) sources.set(name, file.slice(file.lastIndexOf('/') + 1))
    }
  }
})

test('comments in src/ are sentences: none begins with a word that needs a sentence before it', () => {
  const opener =
    'Of|By|Or|Unless|Then|Even|Also|And|But|For|From|So|Not|Nor|Where|While|As|To|Than|Until|Per|Whether|How'
  // A comment begins at `/*` or `/**`, or at the first of several lines with `//` or `--`; its later lines may begin with any word.
  const start = '/[*]{1,2}\\s+(?:[*] )?|(?<!(?://|--).*\\n\\s*)(?://|--) '
  const fragment = new RegExp(`(?:${start})(?:${opener})\\b.*`)
  for (const file of ['.ts', '.js', '.css', '.lua'].flatMap(extension => filesOf(SRC, extension))) {
    const [found] = fragment.exec(readFileSync(file, 'utf8')) ?? []
    assert.equal(found, undefined, `${relative(ROOT, file)}: make it a sentence with a subject, or delete it`)
  }
})

test('versions are pinned exactly', () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const versions: Record<string, string> = { ...manifest.dependencies, ...manifest.devDependencies }
  for (const [name, version] of Object.entries(versions))
    assert.match(version, /^(npm:[\w-]+@)?\d+\.\d+\.\d+$/, `package.json: ${name} is no exact version`)
})

test('the native binaries are those that were looked at: scripts/native-binaries.sh', () => {
  const recorded = readFileSync(join(ROOT, 'src/native-binaries.sha256'), 'utf8').split('\n')
  const printed = execFileSync(join(ROOT, 'scripts/native-binaries.sh'), { encoding: 'utf8' }).split('\n')
  const installed = printed.flatMap(
    line => /^([0-9a-f]{64}) {2}\d+ {2}(\S+)$/.exec(line)?.slice(1).join('  ') ?? [],
  )
  assert.match(installed.join('\n'), /uWebSockets\.js/, printed.join('\n'))
  for (const line of installed)
    assert.ok(recorded.includes(line), `${line} is another: compare it with its origin`)
  // The name that the server gives itself stands in the binary: upstream's line 20, the one that was looked at.
  assert.ok(printed.some(line => line.includes('uWebSockets/20')))
})

test('every default is what its setting expects', () => {
  const defaults = Object.entries<Setting>(SETTINGS).map(([name, { fallback }]) => [name, fallback])
  const set = Object.fromEntries(defaults.filter(([, fallback]) => fallback !== ''))
  assert.doesNotThrow(() => parseConfig(set))
})

test('something refuses with each reason', () => {
  const files = filesOf(SRC, '.ts').filter(
    file => !/^(domain\/outcome|openapi\/|words\/)/.test(relative(SRC, file)),
  )
  const code = files.map(file => readFileSync(file, 'utf8')).join()
  for (const reason of Object.keys(OUTCOMES))
    assert.ok(code.includes(`'${reason}'`), `nothing gives ${reason}`)
})
