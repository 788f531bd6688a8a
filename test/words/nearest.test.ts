/** The word that somebody may have meant who typed another. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, nearest } from '../../src/words/nearest.ts'
import { words } from '../harness/values.ts'

const WORDS = ['create', 'list', 'update', 'revoke', 'rotate', 'POWGATE_PORT', 'POWGATE_ADMIN_PORT']

test('nearest: the word with the fewest edits, or one whose first four letters were typed; none for what is unlike all', () => {
  const typedAndMeant = words(
    'creat=create creaate=create creste=create craete=create lsit=list rotote=rotate createsite=create',
    'POWGATE_ADMIN=POWGATE_ADMIN_PORT rev delete-all x liquidate',
  )
  for (const [typed = '', meant] of ['', ...typedAndMeant].map(text => text.split('=')))
    assert.equal(nearest(typed, WORDS), meant, typed)
  assert.equal(nearest('ab', ['aa', 'bb']), 'aa', 'of two the earlier')
  assert.deepEqual([didYouMean('x', WORDS), didYouMean('updat', WORDS)], ['', ' (did you mean update?)'])
})
