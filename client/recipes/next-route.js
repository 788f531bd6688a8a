// Next.js: app/contact/route.js
import { Powgate, PowgateError } from 'powgate-client'

let gate

/** For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token. */
const wordsOf = ({ code }) =>
  code === 'token-missing'
    ? 'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.'
    : `We could not check that you are a person (${code}). Please send the form again.`

/**
 * The visitor's address: the last in the header, which the proxy nearest to Next.js wrote. Without a proxy Next.js writes it,
 * unless the visitor did. Behind several proxies, let the first write a header of its own over what visitors send, and take that.
 */
const addressOf = ({ headers }) => headers.get('x-forwarded-for')?.split(',').at(-1).trim()

export async function POST(request) {
  // A route handler limits no body. A chunked one tells no length, so your proxy has to limit it.
  if (request.headers.get('content-length') > 100_000)
    return new Response('The form is too long.', { status: 413 })
  // Not at the top: `next build` runs that, where the key is not there.
  gate ??= new Powgate({ url: process.env.POWGATE_URL, apiKey: process.env.POWGATE_API_KEY })
  const form = await request.formData().catch(() => new FormData()) // none if the body is no form
  const ip = addressOf(request)
  if (!ip) return new Response('There is no address to check.', { status: 403 })
  try {
    const result = await gate.verify(form.get('powgate-token'), { ip })
    if (!result.ok) return new Response(wordsOf(result), { status: 403 })
  } catch (error) {
    if (!(error instanceof PowgateError)) throw error
    console.error('powgate:', error.message)
    return new Response('Please send the form again in a moment.', { status: 503 })
  }
  return new Response('thank you')
}
