/** Redeems a token like any site's backend, by POST /verify-token over HTTP. */

import { type IncomingMessage, type RequestOptions, request } from 'node:http'

export interface RedemptionAnswer {
  /** HTTP status; 0 without an answer. */
  readonly status: number
  /** The answer's JSON; undefined if the answer is not JSON. */
  readonly answer: unknown
  readonly ms: number
}

/** The address on which this service listens. */
export interface ServiceAddress {
  readonly host: string
  readonly port: number
}

const ANSWER_MS_MAX = 3000
const ANSWER_CHARACTERS_MAX = 10_000

/** Never rejects; without an answer, the status is 0. */
export function redeem(
  listener: ServiceAddress,
  apiKey: string,
  body: { readonly token: string; readonly expectedIp?: string },
): Promise<RedemptionAnswer> {
  const start = performance.now()
  return new Promise(resolve => {
    const finish = (status: number, text = '') =>
      resolve({ status, answer: parse(text), ms: Math.round((performance.now() - start) * 10) / 10 })
    const outgoing = request(optionsFor(listener, apiKey), incoming => {
      readText(incoming).then(
        text => finish(incoming.statusCode ?? 0, text),
        () => finish(0),
      )
    })
    outgoing.on('error', () => finish(0))
    outgoing.end(JSON.stringify(body))
  })
}

function optionsFor({ host, port }: ServiceAddress, apiKey: string): RequestOptions {
  const isEverywhere = host === '0.0.0.0' || host === '::'
  return {
    host: host === '::' ? '::1' : isEverywhere ? '127.0.0.1' : host,
    port,
    path: '/verify-token',
    method: 'POST',
    headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  }
}

async function readText(incoming: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of incoming.setEncoding('utf8')) {
    text += chunk
    if (text.length > ANSWER_CHARACTERS_MAX) throw new Error('the answer is too long')
  }
  return text
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
