/**
 * `npm run build:wordpress`: makes powgate-wordpress.zip, which an owner uploads, from client/wordpress/powgate/. It adds the
 * template of all texts (.pot), and each translation as WordPress reads it (.mo); it fails if one lacks a text.
 */

import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SOURCE = join(ROOT, 'client/wordpress/powgate')
const ZIP = process.argv[2] ?? join(ROOT, 'powgate-wordpress.zip')

type Texts = ReadonlyMap<string, string>

/** The texts of all PHP files, each with the comment for translators before it, or ''. */
function textsOfPhp(): Texts {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.php'),
  )
  const call =
    /(?:\/\* (translators: [^*]*) \*\/\s*[^\n]*?)?(?:esc_html__|__)\( '((?:[^'\\]|\\.)*)', 'powgate' \)/g
  const texts = new Map<string, string>()
  for (const name of files.sort())
    for (const [, note = '', text] of readFileSync(join(SOURCE, name), 'utf8').matchAll(call))
      texts.set(text!.replace(/\\(.)/g, '$1'), note)
  return texts
}

const HEADER = /^msgid ""\nmsgstr ""\n((?:".*"\n)+)/m
const ENTRY = /^msgid (".+")\nmsgstr (".*")$/gm
const unquoted = (line: string): string => JSON.parse(line)

function textsOfPo(po: string): Texts {
  const header = HEADER.exec(po)![1]!.trim().split('\n').map(unquoted).join('')
  const entries = [...po.matchAll(ENTRY)].map(([, id, text]) => [unquoted(id!), unquoted(text!)] as const)
  return new Map([['', header], ...entries])
}

function checkComplete(name: string, translated: Texts, texts: Texts): void {
  const placeholders = (text = '') => (text.match(/%(\d\$)?s/g) ?? []).sort().join()
  const problems = [...texts.keys()].flatMap(id => {
    if (!translated.get(id)) return [`no translation of: ${id}`]
    const isSame = placeholders(id) === placeholders(translated.get(id))
    return isSame ? [] : [`other placeholders than in: ${id}`]
  })
  const stale = [...translated.keys()].filter(id => id !== '' && !texts.has(id))
  for (const id of stale) problems.push(`no longer in the code: ${id}`)
  if (problems.length > 0) throw new Error(`languages/${name}:\n${problems.join('\n')}`)
}

/** GNU gettext's binary form: a head of seven words, then length and offset of each original, then of each translation. */
function mo(texts: Texts): Buffer {
  const pairs = [...texts].map(pair => pair.map(text => Buffer.from(text)))
  pairs.sort(([a], [b]) => Buffer.compare(a!, b!)) // readers may search by halves
  const tableAt = 28
  const tables = Buffer.alloc(tableAt + 16 * pairs.length)
  const head = [0x950412de, 0, pairs.length, tableAt, tableAt + 8 * pairs.length, 0, tables.length]
  for (const [index, word] of head.entries()) tables.writeUInt32LE(word, 4 * index)
  const strings = [0, 1].flatMap(side => pairs.map(pair => pair[side]!))
  let at = tables.length
  for (const [index, text] of strings.entries()) {
    tables.writeUInt32LE(text.length, tableAt + 8 * index)
    tables.writeUInt32LE(at, tableAt + 8 * index + 4)
    at += text.length + 1
  }
  return Buffer.concat([tables, ...strings.flatMap(text => [text, Buffer.alloc(1)])])
}

function pot(texts: Texts): string {
  const entries = [...texts].map(([id, note]) => {
    return `${note && `#. ${note}\n`}msgid ${JSON.stringify(id)}\nmsgstr ""\n`
  })
  const header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
  return [header, ...entries].join('\n')
}

/** The directory of plugins compares these, and offers an update if they differ from what is installed. */
function checkVersion(): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const versionLines = [
    ['powgate.php', `Version:           ${version}\n`],
    ['powgate.php', `POWGATE_VERSION = '${version}'`],
    ['readme.txt', `Stable tag: ${version}\n`],
  ] as const
  for (const [name, line] of versionLines)
    if (!readFileSync(join(SOURCE, name), 'utf8').includes(line))
      throw new Error(`${name} lacks the version of package.json: ${line}`)
}

checkVersion()
const folder = mkdtempSync(join(tmpdir(), 'powgate-wordpress-'))
try {
  const target = join(folder, 'powgate')
  const languages = join(target, 'languages')
  cpSync(SOURCE, target, { recursive: true })
  const texts = textsOfPhp()
  writeFileSync(join(languages, 'powgate.pot'), pot(texts))
  for (const name of readdirSync(languages).filter(name => name.endsWith('.po'))) {
    const translated = textsOfPo(readFileSync(join(languages, name), 'utf8'))
    checkComplete(name, translated, texts)
    writeFileSync(join(languages, name.replace(/po$/, 'mo')), mo(translated))
  }
  rmSync(ZIP, { force: true })
  execFileSync('python3', ['-m', 'zipfile', '-c', ZIP, target])
  process.stdout.write(`${ZIP}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
