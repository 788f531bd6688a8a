/**
 * The documentation as a site: VitePress builds it, every page is there, and the search knows them. A dead link ends the build, which
 * publishes nothing then (.github/workflows/docs.yml); docs.test.ts follows the links of the texts themselves.
 */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { installNpmPackages } from '../harness/packages.ts'
import { temporaryDir } from '../harness/temporary.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const SITE = join(ROOT, 'scripts/docs-site')
const REPOSITORY = 'https://github.com/OWNER/powgate/blob/main/'

test('the site has every page of docs/, a search, and no link to a file that is not there', async () => {
  installNpmPackages(SITE)
  const out = temporaryDir('docs-site')
  await promisify(execFile)('npx', ['vitepress', 'build'], {
    cwd: SITE,
    env: { ...process.env, DOCS_OUT: out },
  })
  const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  for (const page of pages.filter(name => name.endsWith('.md'))) {
    const file = join(out, page.replace(/README\.md$/, 'index.md').replace(/md$/, 'html'))
    assert.ok(existsSync(file), `the site lacks ${page}`)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/href="([^"#]+)/g))
      if (path!.startsWith(REPOSITORY))
        assert.ok(existsSync(join(ROOT, path!.slice(REPOSITORY.length))), `${page}: there is no ${path}`)
  }
  const chunks = readdirSync(join(out, 'assets', 'chunks'))
  const hasIndex = chunks.some(name => name.startsWith('@localSearchIndex'))
  assert.ok(hasIndex, 'there is no index to search')
})
