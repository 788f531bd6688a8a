/**
 * The whole contract, §1 to §8, over HTTP against the forked service with its default limits and lifetimes, on each
 * store. Every answer is checked against the OpenAPI document.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { minuteTests } from './limits.ts'
import { OF_CONTRACT, OpenapiChecker } from './openapi-checker.ts'
import { CONTRACT, onSections } from './sections.ts'
import { onEachStore } from './support.ts'

/** One section alone, to try it. */
const section = process.env.TEST_SECTION

const checker = new OpenapiChecker()
checker.listen()

if (section === undefined) {
  onEachStore(CONTRACT, { waiting: minuteTests })
  test('there is nothing in the OpenAPI document that was not seen, outages aside', () => {
    assert.deepEqual(checker.unseen(OF_CONTRACT), [])
  })
} else onSections(section)
