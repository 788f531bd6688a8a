import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, nearest } from '../../src/domain/nearest.ts'

const WORDS = ['create', 'list', 'update', 'revoke', 'rotate']

test('a letter too many, too few, wrong or swapped is understood', () => {
  for (const typed of ['creat', 'creaate', 'creste', 'craete']) assert.equal(nearest(typed, WORDS), 'create')
  assert.equal(nearest('lsit', WORDS), 'list')
  assert.equal(nearest('', WORDS), undefined)
})

test('the nearest is meant, and of two equally near the earlier', () => {
  assert.equal(nearest('rotote', WORDS), 'rotate')
  assert.equal(nearest('ab', ['aa', 'bb']), 'aa')
})

test('a beginning is understood, from four letters on', () => {
  assert.equal(nearest('POWGATE_ADMIN', ['POWGATE_PORT', 'POWGATE_ADMIN_PORT']), 'POWGATE_ADMIN_PORT')
  assert.equal(nearest('createsite', WORDS), 'create')
  assert.equal(nearest('rev', WORDS), undefined)
})

test('other words are not guessed', () => {
  for (const typed of ['delete-all', 'x', 'liquidate', 'sites'])
    assert.equal(nearest(typed, WORDS), undefined)
  assert.equal(didYouMean('x', WORDS), '')
  assert.equal(didYouMean('updat', WORDS), ' (did you mean update?)')
})
