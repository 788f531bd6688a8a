import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from './random.ts'

/** A fork with its parent's numbers would make the same tokens as another fork, and the store would refuse them as used. */
test('random: forks have numbers of their own, the same for the same seed', () => {
  const words = (random: Random) => Array.from({ length: 1000 }, () => random.hex(8))
  for (let seed = 1; seed <= 50; seed++) {
    const parent = new Random(seed)
    const all = [parent.fork(), parent.fork(), parent.fork(), parent].flatMap(words)
    // Of 4,000 numbers out of 2^32, two are equal with a probability of 1 in 500.
    assert.ok(new Set(all).size >= all.length - 2, `seed ${seed}: ${all.length - new Set(all).size} twice`)
    assert.deepEqual(words(new Random(seed).fork()), all.slice(0, 1000))
  }
})
