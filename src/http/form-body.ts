/**
 * Parses untrusted forms: urlencoded (WHATWG URL) and multipart/form-data (RFC 7578) with text fields only. Malformed bodies and
 * repeated fields are refused; uWebSockets.js' `getParts` would accept bodies without an end and text around parts.
 */

import { type Parsed, textOf, type Unparsed, unparsed } from './schemas.ts'

type FormFields = Record<string, string>
type Pair = [name: string, value: string]

/** No known client sends as many fields. */
const FIELDS_MAX = 32

const NOT_MULTIPART = problem('The body is not well-formed multipart/form-data.')

export function parseUrlencoded(bytes: Buffer): Parsed<FormFields> {
  const text = textOf(bytes)
  if (typeof text !== 'string') return text
  try {
    decodeURIComponent(text) // URLSearchParams would repair it
  } catch {
    return problem('The body is not percent-encoded UTF-8.')
  }
  // Parsing stops at one field too many (the first part may be empty), because on Node.js 24 twice as many fields take four times as long.
  const some = text.split(/&+/, FIELDS_MAX + 2).join('&')
  return fieldsOf(new URLSearchParams(`?${some}`)) // it drops a leading question mark, which must not be the form's
}

/** RFC 2046, 5.1.1. */
const BOUNDARY =
  /;[ \t]*boundary=(?:([\w'+.-]{1,70})|"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])")[ \t]*(?:;|$)/i

export function parseMultipart(bytes: Buffer, contentType: string): Parsed<FormFields> {
  const match = BOUNDARY.exec(contentType)
  if (match === null) return problem('The Content-Type header names no boundary.')
  const body = textOf(bytes)
  if (typeof body !== 'string') return body
  const delimiter = `\r\n--${match[1] ?? match[2]}`
  const text = `\r\n${body}` // Each delimiter follows a line break; this adds one before the first.
  if (!text.startsWith(delimiter)) return NOT_MULTIPART
  const pairs: Pair[] = []
  let start = delimiter.length
  while (!text.startsWith('--', start)) {
    const end = text.indexOf(delimiter, start)
    if (!text.startsWith('\r\n', start) || end < 0) return NOT_MULTIPART
    const pair = pairOf(text.slice(start, end))
    if (!Array.isArray(pair)) return pair
    pairs.push(pair)
    start = end + delimiter.length
  }
  const rest = text.slice(start + 2)
  return rest === '' || rest === '\r\n' ? fieldsOf(pairs) : NOT_MULTIPART
}

/** Refuses files, which have more parameters. .NET writes no quotes. */
const DISPOSITION = /^content-disposition:[ \t]*form-data;[ \t]*name=(?:"([^"\r\n]*)"|([\w.-]+))[ \t]*$/i

/** @param part headers, each after a line break; an empty line; the content */
function pairOf(part: string): Pair | Unparsed {
  const headersEnd = part.indexOf('\r\n\r\n')
  if (headersEnd < 0) return NOT_MULTIPART
  const headers = part.slice(2, headersEnd).split('\r\n')
  const names = headers.filter(header => /^content-disposition:/i.test(header))
  const match = names.length === 1 ? DISPOSITION.exec(names[0]!) : null
  const name = match?.[1] ?? match?.[2]
  if (name === undefined) return problem('A part of the body is not a text field.')
  return [name, part.slice(headersEnd + 4)]
}

function fieldsOf(pairs: Iterable<Pair>): Parsed<FormFields> {
  const body: FormFields = Object.create(null) // a field may have any name
  let count = 0
  for (const [name, value] of pairs) {
    if (name in body) return problem('A field of the body is there twice.')
    if (++count > FIELDS_MAX) return problem(`The body has more than ${FIELDS_MAX} fields.`)
    body[name] = value
  }
  return { ok: true, body }
}

function problem(detail: string): Unparsed {
  return unparsed({ reason: 'body-not-form', detail })
}
