/** The site of docs/. `npm run docs` serves it; a dead link ends the build. */

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { defineConfig, type Plugin } from 'vitepress'

const DOCS = new URL('../../../docs/', import.meta.url).pathname
const HERE = new URL('page.js', import.meta.url).pathname
const REPOSITORY = 'https://github.com/OWNER/powgate/blob/main'

/** Groups of the sidebar: the headings of docs/README.md with their links. */
function sidebar() {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8')
  return index
    .split(/^## /m)
    .slice(1)
    .map(group => {
      const links = [...group.matchAll(/\[([^\]]+)\]\(([^)]+\.md)\)/g)]
      const items = links.filter(([, , path]) => !path!.startsWith('..'))
      return {
        text: group.split('\n')[0]!,
        collapsed: true,
        items: items.map(([, text, path]) => ({ text: text!, link: `/${path!.replace('README.md', '')}` })),
      }
    })
}

/** Links from pages to files outside of docs/ lead to the repository; README.md is the index of a folder. */
function linkOf(href: string, page: string): string {
  if (/^(\w+:|#)/.test(href)) return href
  const path = posix.join('docs', posix.dirname(page), href)
  if (!path.startsWith('docs/') || !/\.md(#|$)/.test(path)) return `${REPOSITORY}/${path}`
  return href.replace('README.md', 'index.md')
}

/** The pages lie outside of this folder, where Node.js would not look for its packages. */
const ownPackages: Plugin = {
  name: 'own-packages',
  enforce: 'pre',
  resolveId(source, importer, { ssr }) {
    if (!importer?.startsWith(DOCS) || !/^vue(\/|$)/.test(source)) return null
    return ssr ? { id: source, external: true } : this.resolve(source, HERE)
  },
}

const folders = readdirSync(DOCS, { withFileTypes: true }).filter(entry => entry.isDirectory())
const rewrites = ['', ...folders.map(({ name }) => `${name}/`)].map(folder => [
  `${folder}README.md`,
  `${folder}index.md`,
])

export default defineConfig({
  title: 'powgate',
  description: 'A self-hosted CAPTCHA without the puzzle',
  srcDir: '../../docs',
  base: process.env.DOCS_BASE ?? '/',
  outDir: process.env.DOCS_OUT ?? '.vitepress/dist',
  cacheDir: '.vitepress/cache',
  rewrites: Object.fromEntries(rewrites),
  metaChunk: true,
  ignoreDeadLinks: 'localhostLinks',
  vite: { plugins: [ownPackages] },
  markdown: {
    html: false,
    languageAlias: { caddy: 'nginx', haproxy: 'nginx' },
    config(md) {
      md.core.ruler.push('links', ({ tokens, env }) => {
        for (const { children } of tokens)
          for (const token of children ?? []) {
            const href = token.type === 'link_open' ? token.attrGet('href') : null
            if (href !== null)
              token.attrSet('href', linkOf(href, env.relativePath.replace('index.md', 'README.md')))
          }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    sidebar: sidebar(),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: 'https://github.com/OWNER/powgate' }],
  },
})
