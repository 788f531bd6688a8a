/** Checks real answers against the OpenAPI document, and records which of its responses were seen. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openapiDocument } from '../../src/openapi/document.ts'
import { type Answer, listenToAnswers } from '../harness/http.ts'
import { words } from '../harness/values.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document is looked into everywhere
type Json = any

/** Headers of HTTP itself or of the server, on any answer. Content-Type is the key of `content`. */
const TRANSPORT_HEADERS = words('date connection keep-alive content-length content-type uwebsockets')

/** Documented answers, as `unseen` writes them, by the file that must see them: contract.test.ts all that the two others do not. */
export const SEEN_BY_OUTAGE_TEST = / 503 (unavailable|internal-error)$/
export const SEEN_BY_OPENAPI_TEST = / 503 overloaded$| ambiguous-length$/
const SEEN_BY_OTHERS = `${SEEN_BY_OUTAGE_TEST.source}|${SEEN_BY_OPENAPI_TEST.source}`
export const SEEN_BY_CONTRACT_TEST = new RegExp(`^(?!.*(?:${SEEN_BY_OTHERS}))`)

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

export class OpenapiChecker {
  readonly document: Json = JSON.parse(JSON.stringify(openapiDocument(version)))
  readonly #ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true })
  readonly #seen = new Set<string>()

  constructor() {
    this.#ajv.addSchema({ ...this.document, $id: 'open' })
    this.#ajv.addSchema({ ...closed(this.document), $id: 'closed' })
  }

  /** Checks every answer to a call from now on, but for those of paths that the document does not have, and to preflights. */
  listen(): void {
    listenToAnswers((method, path, answer) => {
      const isPreflight = method === 'OPTIONS' && answer.status === 200
      if (path in this.document.paths && !isPreflight) this.check(method, path, answer)
    })
  }

  /**
   * @param kind `closed`, for answers: an object may have only the fields that its schema names. In requests others are ignored.
   * @param path the parts of a JSON pointer into the document
   */
  #validator(kind: 'open' | 'closed', path: readonly string[]): ValidateFunction {
    const pointer = path.map(part => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    const validate = this.#ajv.getSchema(`${kind}#/${pointer.join('/')}`)
    assert.ok(validate !== undefined, `no schema at ${path.join(' ')}`)
    return validate
  }

  check(method: string, path: string, answer: Answer): void {
    const operation = method.toLowerCase()
    const item = this.document.paths[path]
    assert.ok(item !== undefined, `${path} is not in the document`)
    // A wrong method is no operation; its answer is documented with the path's own operation.
    const name = operation in item ? operation : 'get' in item ? 'get' : 'post'
    const response = item[name].responses[answer.status]
    const about = `${method} ${path} ${answer.status} ${answer.text}`
    assert.ok(response !== undefined, `not documented: ${about}`)
    this.#checkHeaders(response.headers, answer, about)
    if (method !== 'HEAD') this.#checkBody([path, name], response, answer, about)
    this.#seen.add(seenKey(path, name, answer.status, codeOf(answer)))
  }

  #checkHeaders(headers: Json, answer: Answer, about: string): void {
    const listed = new Map<string, Json>()
    for (const [name, { $ref }] of Object.entries<Json>(headers))
      listed.set(name.toLowerCase(), this.document.components.headers[$ref.split('/').at(-1)])
    for (const name of Object.keys(answer.headers))
      assert.ok(TRANSPORT_HEADERS.includes(name) || listed.has(name), `${name} is not listed: ${about}`)
    for (const [name, header] of listed) {
      const text = answer.headers[name]
      if (text === undefined) assert.ok(header.required !== true, `${name} is missing: ${about}`)
      else {
        const value = header.schema.type === 'integer' ? Number(text) : text
        assert.ok(this.#ajv.validate(header.schema, value), `${name}: ${text}: ${about}`)
      }
    }
  }

  #checkBody([path, name]: [string, string], response: Json, answer: Answer, about: string): void {
    if (response.content === undefined) {
      assert.equal(answer.text, '', about)
      return
    }
    const contentType = String(answer.headers['content-type'])
    assert.ok(contentType in response.content, `${contentType} is not listed: ${about}`)
    const place = ['paths', path, name, 'responses', String(answer.status), 'content', contentType, 'schema']
    const validate = this.#validator('closed', place)
    assert.ok(validate(answer.json), `${about}: ${JSON.stringify(validate.errors)}`)
  }

  /** Every example validates against the schema it stands beside. Returns how many there are. */
  checkExamples(): number {
    let count = 0
    const walk = (node: Json, place: string[]): void => {
      if (typeof node !== 'object' || node === null) return
      if ('schema' in node) {
        const values =
          'example' in node
            ? [node.example]
            : Object.values<Json>(node.examples ?? {}).map(({ value }) => value)
        const kind = place.includes('responses') ? 'closed' : 'open'
        for (const value of values) {
          count++
          const validate = this.#validator(kind, [...place, 'schema'])
          assert.ok(validate(value), `${place.join(' ')}: ${JSON.stringify([value, validate.errors])}`)
        }
      }
      for (const [key, child] of Object.entries(node)) walk(child, [...place, key])
    }
    walk(this.document, [])
    return count
  }

  /** The documented answers that match one of the patterns above and were never seen, such as `GET /challenge 400 site-key-missing`. */
  unseen(part: RegExp): string[] {
    const unseen: string[] = []
    for (const [path, item] of Object.entries<Json>(this.document.paths)) {
      for (const [name, { responses }] of Object.entries<Json>(item)) {
        for (const [status, { content }] of Object.entries<Json>(responses)) {
          const codes = codesIn(content)
          for (const code of codes.length === 0 ? [''] : codes) {
            const key = seenKey(path, name, Number(status), code)
            if (part.test(key) && !this.#seen.has(key)) unseen.push(key)
          }
        }
      }
    }
    return unseen
  }
}

const seenKey = (path: string, method: string, status: number, code: string): string =>
  `${method.toUpperCase()} ${path} ${status} ${code}`.trim()

/** Distinguishes the answers of one status. */
function codeOf({ json }: Answer): string {
  if (typeof json !== 'object' || json === null) return ''
  if (json.code !== undefined) return json.code
  if (typeof json.passed === 'boolean') return `passed ${json.passed}`
  // Of /siteverify, which has no `code`.
  if ('challenge_ts' in json) return 'success'
  if ('error-codes' in json) return json['error-codes'][0]
  return ''
}

/** The codes that a response can have, as `codeOf` has them. */
function codesIn(content: Json): string[] {
  const schema = content?.['application/json']?.schema
  if (schema === undefined) return []
  const variants: Json[] = schema.anyOf ?? [schema]
  return variants.flatMap(({ $ref, properties }) => {
    if ($ref?.endsWith('/Passed')) return ['passed true']
    if ($ref?.endsWith('/Failed')) return ['passed false']
    if ($ref?.endsWith('/SiteverifySuccess')) return ['success']
    return properties?.code?.enum ?? properties?.['error-codes']?.items.enum ?? []
  })
}

/** The same, but an object may have only the fields that its schema names. */
function closed(node: Json): Json {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(Object.entries(node).map(([key, child]) => [key, closed(child)]))
  return node.type === 'object' && 'properties' in node ? { ...copy, additionalProperties: false } : copy
}
