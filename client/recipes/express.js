// Express 5. Behind a proxy: app.set('trust proxy', ...), so that request.ip is the visitor's address.
import express from 'express'
import { Powgate, PowgateError } from 'powgate-client'

const gate = new Powgate({ url: process.env.POWGATE_URL, apiKey: process.env.POWGATE_API_KEY })
const app = express()

/** For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token. */
const wordsOf = ({ code }) =>
  code === 'token-missing'
    ? 'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.'
    : `We could not check that you are a person (${code}). Please send the form again.`

async function human(request, response, next) {
  const result = await gate.verify(request.body?.['powgate-token'], { ip: request.ip })
  if (result.ok) return next()
  response.status(403).send(wordsOf(result))
}

app.post('/contact', express.urlencoded(), human, (_request, response) => response.send('thank you'))

app.use((error, _request, response, next) => {
  if (!(error instanceof PowgateError)) return next(error)
  console.error('powgate:', error.message)
  response.status(503).send('Please send the form again in a moment.')
})

app.listen(Number(process.env.PORT), '127.0.0.1')
