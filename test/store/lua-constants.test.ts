/**
 * A number of the domain that a Lua file repeats equals the domain's. With other numbers in PRICING, both stores still count as the model
 * does: so neither has numbers of its own.
 */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { PRICING } from '../../src/domain/pricing.ts'

// Any others. They are replaced before the imports below read the scripts, which take them over.
Object.assign(PRICING, {
  networkRecentMs: 25_000,
  siteRecentMs: 90_000,
  usualMs: 7_200_000,
  learnsAllMs: 60_000,
  learnedShare: 0.25,
  budgetFactor: 2,
  returningProofs: 5,
})
const { openEmbeddedTwice, openRedisTwice } = await import('./harness.ts')
const { metersConformance } = await import('./meters-conformance.ts')

const LUA = new URL('../../src/store/redis/lua/', import.meta.url)

test('a number in a Lua file whose comment names a file of the domain is the one of that file', async () => {
  for (const file of readdirSync(LUA, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.lua')) continue
    const text = readFileSync(new URL(file, LUA), 'utf8')
    const lines = [...text.matchAll(/^local ([A-Z_, ]+) = ([\d, ]+) -- (domain\/\S+)$/gm)]
    assert.equal(lines.length, text.match(/\d -- .*domain/g)?.length ?? 0, `${file} has another form`)
    for (const [, names, values, source] of lines) {
      const domain = await import(`../../src/${source}`)
      for (const [index, name] of names!.split(', ').entries())
        assert.equal(Number(values!.split(', ')[index]), domain[name], `${file}: ${name}`)
    }
  }
})

metersConformance('embedded, other numbers', openEmbeddedTwice)
metersConformance('redis, other numbers', openRedisTwice)
