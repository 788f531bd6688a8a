/** The box, in every state and language: 300 by 66 px, nothing cut off, no word broken; larger text makes it grow. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { build } from 'esbuild'
import { LANGUAGES } from '../../src/widget/texts.ts'
import { openBrowser } from '../harness/browser.ts'

const ENTRY = `
import { durationText, loadLanguage } from './texts.ts'
import { View } from './view.ts'

/** A text of more than two lines, else its words that a line's end cuts. Han and Thai may be cut: they have no spaces between words. */
const brokenIn = ({ firstChild: node }) => {
  if (!node) return []
  const linesOf = (start, end) => {
    const range = document.createRange()
    range.setStart(node, start)
    range.setEnd(node, end)
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size
  }
  const words = [...node.data.matchAll(/[^\\s-]+/g)].filter(([word]) => !/[\\p{scx=Han}\\p{scx=Thai}]/u.test(word))
  const broken = words.filter(({ 0: word, index }) => linesOf(index, index + word.length) > 1).map(([word]) => word)
  return linesOf(0, node.data.length) > 2 ? [node.data] : broken
}
const place = document.body.appendChild(document.createElement('div'))
const view = new View(place.attachShadow({ mode: 'open' }), () => {})
/** @param file what the widget would load: the language's texts as JSON */
globalThis.measure = async (code, file) => {
  globalThis.fetch = async () => new Response(file)
  const language = await loadLanguage(code, '')
  if (language.code !== code) throw new Error(code + ' did not load')
  const { texts } = language
  view.setLanguage(language)
  const wait = texts.wait.replace('{s}', durationText(language, 90, true))
  const { sending } = texts
  const states = [ // state, text, detail, what is said of sending, the button's text
    ['idle', texts.ready], ['idle', texts.idle, '', '', texts.start],
    ['working', texts.working, '', sending],
    ['working', texts.slow.replace('{s}', durationText(language, 90, false)), '', sending],
    ['working', texts.offline, texts.online, sending],
    ...['busy', 'unavailable', 'network'].map(key => ['working', texts[key], wait, sending]),
    ['verified', texts.verified], ['expired', texts.expired], ['expired', texts.expired, '', '', texts.start],
    ...['rejected', 'network'].map(key => ['failed', texts[key], '', '', texts.retry]),
    ['failed', texts.unavailable, '', '', texts.retry + '\\n' + durationText(language, 2 * 3600, true)],
    ['failed', texts.setup, texts.tell + ':\\norigin-not-allowed'],
  ]
  return states.map(([state, text, detail = '', sending = '', button]) => {
    view.show({ state, picture: state, text, detail, sending, button, label: '', isDisabled: false, isNeeded: true })
    const { width, height } = view.box.getBoundingClientRect()
    const isCut = [view.box, ...view.box.querySelectorAll('*')].some(one =>
      (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1) && one.clientWidth > 0)
    const broken = [...view.box.querySelectorAll('.text, .detail, .sending, button')].flatMap(brokenIn)
    return { about: [code, state, text, detail, button].join(' / '), width, height, isCut, broken }
  })
}
`

const bundled = await build({
  stdin: { contents: ENTRY, resolveDir: new URL('../../src/widget', import.meta.url).pathname, loader: 'ts' },
  bundle: true,
  write: false,
  format: 'iife',
})
const browser = await openBrowser()
const textsFile = (code: string) =>
  code === 'en' ? '' : readFileSync(new URL(`../../src/widget/texts/${code}.json`, import.meta.url), 'utf8')

type Measured = { about: string; width: number; height: number; isCut: boolean; broken: string[] }

async function measured(style: string): Promise<Measured[]> {
  const page = await browser.newPage()
  await page.setContent(`<!doctype html><style>${style}</style><body></body>`)
  await page.addScriptTag({ content: bundled.outputFiles[0]!.text })
  const all: Measured[] = []
  for (const code of ['en', ...LANGUAGES]) {
    const given = JSON.stringify([code, textsFile(code)])
    all.push(...((await page.evaluate(`measure(...${given})`)) as Measured[]))
  }
  await page.close()
  return all
}

test('in every state and language the box is 300 by 66 px, cuts nothing off and breaks no word', async () => {
  // Many themes have a root font of 10 px.
  for (const style of ['', 'html{font-size:62.5%}']) {
    const wrong = (await measured(style)).filter(
      ({ width, height, isCut, broken }) => width !== 300 || height !== 66 || isCut || broken.length > 0,
    )
    assert.deepEqual(wrong, [])
  }
})

test('text of twice the size, and a page of 320 px with text of 200 %: the box grows, nothing is cut off', async () => {
  // 288 px are left between margins of 16 px. There long words may break.
  for (const style of ['html{font-size:200%}', 'html{font-size:200%}body{inline-size:288px}']) {
    const wrong = (await measured(style)).filter(({ isCut, height }) => isCut || height < 2 * 66)
    assert.deepEqual(wrong, [])
  }
})
