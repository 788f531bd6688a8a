/**
 * A peer behind HTTP, as its documentation starts it: `server.mjs cap PUZZLES DIGITS` or `server.mjs altcha`. Sends its port to the
 * parent.
 *
 *   cap     @cap.js/server, whose storage hooks keep everything in maps; POST /challenge, POST /redeem
 *   altcha  altcha-lib's plug-in for Express, with its atomic store hook on a map; GET /challenge, POST /verify
 */

import express from 'express'

const [name, challengeCount, challengeDifficulty] = process.argv.slice(2)
const app = express()
app.use(express.json())

if (name === 'cap') {
  const { default: Cap } = await import('@cap.js/server')
  const [challenges, tokens] = [new Map(), new Map()]
  const hooks = (map, read) => ({
    store: async (key, value) => void map.set(key, value),
    [read]: async key => map.get(key) ?? null,
    delete: async key => void map.delete(key),
    deleteExpired: async () => {},
  })
  const storage = { challenges: hooks(challenges, 'read'), tokens: hooks(tokens, 'get') }
  const cap = new Cap({ noFSState: true, storage })
  const asked = { challengeCount: Number(challengeCount), challengeDifficulty: Number(challengeDifficulty) }
  app.post('/challenge', async (_, response) => response.json(await cap.createChallenge(asked)))
  app.post('/redeem', async (request, response) => response.json(await cap.redeemChallenge(request.body)))
} else {
  const { create } = await import('altcha-lib/frameworks/express')
  const { deriveKey } = await import('altcha-lib/algorithms/sha')
  const used = new Map()
  const altcha = create({
    deriveKey,
    hmacSignatureSecret: 'a secret for the bench, long enough to be accepted',
    createChallengeParameters: () => ({
      algorithm: 'SHA-256',
      cost: 1,
      counter: 20, // the solution: found after 20 tries, and checked by one hash whatever it is
      expiresAt: new Date(Date.now() + 600_000),
    }),
    store: {
      get: async key => used.get(key),
      set: async (key, value) => used.set(key, value),
      setIfAbsent: async (key, value) => !used.has(key) && used.set(key, value) !== undefined,
    },
  })
  app.get('/challenge', altcha.challengeHandler)
  app.post('/verify', altcha.verifyHandler)
}

const server = app.listen(0, '127.0.0.1', () => process.send(server.address().port))
process.on('disconnect', () => process.exit())
