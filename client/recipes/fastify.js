// Fastify 5, with JSON. Forms need @fastify/formbody. Behind a proxy: Fastify({ trustProxy: ... }).
import Fastify from 'fastify'
import { Powgate, PowgateError } from 'powgate-client'

const gate = new Powgate({ url: process.env.POWGATE_URL, apiKey: process.env.POWGATE_API_KEY })
const app = Fastify()

/** For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token. */
const wordsOf = ({ code }) =>
  code === 'token-missing'
    ? 'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.'
    : `We could not check that you are a person (${code}). Please send the form again.`

async function human(request, reply) {
  const result = await gate.verify(request.body?.['powgate-token'], { ip: request.ip })
  if (!result.ok) return reply.code(403).send(wordsOf(result))
}

app.post('/contact', { preHandler: human }, async () => 'thank you')

app.setErrorHandler((error, _request, reply) => {
  if (!(error instanceof PowgateError)) return reply.send(error)
  console.error('powgate:', error.message)
  return reply.code(503).send('Please send the form again in a moment.')
})

await app.listen({ port: Number(process.env.PORT) })
