// Next.js: app/contact/route.js. Next.js tells no address, so the proxy before it must set X-Real-IP, over what visitors send.
import { Powgate, PowgateError } from 'powgate-client'

let gate

export async function POST(request) {
  // Not at the top: `next build` runs that, where the key is not there.
  gate ??= new Powgate({ url: process.env.POWGATE_URL, apiKey: process.env.POWGATE_API_KEY })
  const form = await request.formData()
  try {
    const result = await gate.verify(form.get('powgate-token'), { ip: request.headers.get('x-real-ip') })
    if (!result.ok) return new Response(`refused: ${result.code}`, { status: 403 })
  } catch (error) {
    if (!(error instanceof PowgateError)) throw error
    return new Response('Please send the form again in a moment.', { status: 503 })
  }
  return new Response('thank you')
}
