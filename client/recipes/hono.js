// Hono 4 on Node.js. On other runtimes getConnInfo comes from hono/cloudflare-workers, hono/deno or hono/bun. Behind a proxy it gives the
// proxy's address: take the visitor's from the header that your proxy writes, its last entry if the proxy appends.
import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { Powgate, PowgateError } from 'powgate-client'

const gate = new Powgate({ url: process.env.POWGATE_URL, apiKey: process.env.POWGATE_API_KEY })
const app = new Hono()

/** For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token. */
const wordsOf = ({ code }) =>
  code === 'token-missing'
    ? 'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.'
    : `We could not check that you are a person (${code}). Please send the form again.`

const limited = bodyLimit({ maxSize: 100_000, onError: c => c.text('The form is too long.', 413) })

app.post('/contact', limited, async c => {
  const form = await c.req.parseBody()
  const result = await gate.verify(form['powgate-token'], { ip: getConnInfo(c).remote.address })
  return result.ok ? c.text('thank you') : c.text(wordsOf(result), 403)
})

app.onError((error, c) => {
  console.error(error)
  if (error instanceof PowgateError) return c.text('Please send the form again in a moment.', 503)
  return c.text('Internal Server Error', 500)
})

serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
