/** Blocks of code out of the documentation, as its readers copy them. */

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = new URL('../..', import.meta.url).pathname
const DOCS = join(ROOT, 'docs')

/** The one block of a language that has this text. */
export function sample(language: string, text: string): string {
  const pages = existsSync(DOCS) ? readdirSync(DOCS).filter(name => name.endsWith('.md')) : []
  const files = [join(ROOT, 'README.md'), ...pages.map(name => join(DOCS, name))]
  const blocks = files.flatMap(file =>
    Array.from(readFileSync(file, 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)),
  )
  const found = blocks.filter(([, name, block]) => name === language && block!.includes(text))
  assert.equal(found.length, 1, `${found.length} blocks of ${language} have ${text}`)
  return found[0]![2]!
}

/** The sample with names of this machine; none of the documentation's is left. */
export function adapted(text: string, names: Readonly<Record<string, string>>): string {
  const result = Object.entries(names).reduce((all, [name, own]) => all.replaceAll(name, own), text)
  assert.doesNotMatch(result, /\b10\.0\.0\.|\b(8080|443|9090)\b|\/etc\//)
  return result
}
