import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, nearest } from '../../src/words/nearest.ts'

const WORDS = ['create', 'list', 'update', 'revoke', 'rotate']

test('nearest: one letter too many, too few, wrong or swapped is corrected', () => {
  for (const typed of ['creat', 'creaate', 'creste', 'craete']) assert.equal(nearest(typed, WORDS), 'create')
  assert.equal(nearest('lsit', WORDS), 'list')
  assert.equal(nearest('', WORDS), undefined)
})

test('nearest: the word with the fewest edits is suggested, of two the earlier', () => {
  assert.equal(nearest('rotote', WORDS), 'rotate')
  assert.equal(nearest('ab', ['aa', 'bb']), 'aa')
})

test('nearest: a prefix of four letters or more is completed', () => {
  assert.equal(nearest('POWGATE_ADMIN', ['POWGATE_PORT', 'POWGATE_ADMIN_PORT']), 'POWGATE_ADMIN_PORT')
  assert.equal(nearest('createsite', WORDS), 'create')
  assert.equal(nearest('rev', WORDS), undefined)
})

test('nearest: a word unlike all others has no suggestion', () => {
  for (const typed of ['delete-all', 'x', 'liquidate', 'sites'])
    assert.equal(nearest(typed, WORDS), undefined)
  assert.equal(didYouMean('x', WORDS), '')
  assert.equal(didYouMean('updat', WORDS), ' (did you mean update?)')
})
