// Next.js: app/contact/route.js. Next.js tells no address, so the proxy before it must set X-Real-IP, over what visitors send.
import { Powgate, PowgateError } from 'powgate-client'

let gate

/** For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token. */
const wordsOf = ({ code }) =>
  code === 'token-missing'
    ? 'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.'
    : `refused: ${code}`

export async function POST(request) {
  // Not at the top: `next build` runs that, where the key is not there.
  gate ??= new Powgate({ url: process.env.POWGATE_URL, apiKey: process.env.POWGATE_API_KEY })
  const form = await request.formData()
  try {
    const result = await gate.verify(form.get('powgate-token'), { ip: request.headers.get('x-real-ip') })
    if (!result.ok) return new Response(wordsOf(result), { status: 403 })
  } catch (error) {
    if (!(error instanceof PowgateError)) throw error
    return new Response('Please send the form again in a moment.', { status: 503 })
  }
  return new Response('thank you')
}
