/**
 * Keeps secrets out of the log if a mistake passes one, in three layers:
 *
 *   withhold      fields, by their names; of an error only type, message, code, stack and causes stay
 *   scrubByForm   texts in the form of an API key, a token or a URL's credentials, whoever they belong to
 *   scrubberOf    the secrets of the settings, which have no form, and again by form: in each whole line (logger.ts)
 */

const WITHHELD = '[withheld]'

const WITHHELD_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'Authorization',
  'headers',
  'body',
  'token',
  'apiKey',
  'secret',
  'secrets',
  'password',
  'idempotencyKey',
  // Fields of ioredis' errors, for a copy of one that is no Error.
  'command',
  'args',
  'previousErrors',
])

/** Deeper levels are not looked at, because pino does not write them (its depthLimit). */
const DEPTH_MAX = 5

/**
 * Returns the value itself if nothing is withheld, else a copy; `scrub` removes secrets from the texts of errors. pino's own
 * redaction takes 150 us a line for this many names.
 */
export function withhold<Value>(value: Value, scrub: (text: string) => string, depth = DEPTH_MAX): Value {
  if (typeof value !== 'object' || value === null || depth === 0) return value
  if (value instanceof Error) return safeError(value, scrub) as Value
  const entries = value as Record<string, unknown>
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(entries)) {
    const kept = WITHHELD_NAMES.has(name) ? WITHHELD : withhold(entries[name], scrub, depth - 1)
    if (kept === entries[name]) continue
    copy ??= (Array.isArray(value) ? [...value] : { ...entries }) as Record<string, unknown>
    copy[name] = kept
  }
  return (copy ?? value) as Value
}

const API_KEY = /sk_([0-9A-Za-z]{8})_[\w-]{43}/g
/** A token (domain/token.ts), plain or URL-encoded. Its nonce stays, for `powgate explain`. */
const TOKEN = /\d{13}(\||%7[Cc])([0-9a-f]{32})\1\d{1,16}\1[\w-]{48,}\1[\w-]{43}/g
/** Up to the last @, since a password may have one. */
const URL_CREDENTIALS = /:\/\/[^\s/"]*@/g

export function scrubByForm(text: string): string {
  return text
    .replace(API_KEY, `sk_$1_${WITHHELD}`)
    .replace(TOKEN, `[token of $2]`)
    .replace(URL_CREDENTIALS, `://${WITHHELD}@`)
}

/** Shorter secrets would match ordinary text. */
const REMOVED_CHARACTERS_MIN = 8

/** Returns a function that removes these secrets too, plain or in JSON. */
export function scrubberOf(secrets: readonly string[]): (text: string) => string {
  const long = secrets.filter(secret => secret.length >= REMOVED_CHARACTERS_MIN)
  const texts = new Set(long.flatMap(secret => [JSON.stringify(secret).slice(1, -1), secret]))
  return text => {
    let scrubbed = scrubByForm(text)
    for (const secret of texts) scrubbed = scrubbed.replaceAll(secret, WITHHELD)
    return scrubbed
  }
}

/** Texts of errors are cut to these lengths, so that lines stay below 4 KiB: longer ones of several workers mix in a pipe. */
const MESSAGE_CHARACTERS_MAX = 300
const STACK_CHARACTERS_MAX = 1200
const CAUSES_MAX = 2

interface SafeError {
  readonly type: string
  readonly message: string
  readonly code?: string
  readonly stack?: string
  readonly cause?: SafeError
}

/** @param scrub removes secrets, before the cut: half a secret would not be recognised */
export function safeError(error: Error, scrub: (text: string) => string): SafeError {
  const { stack } = error
  const described = describe(error, scrub)
  return stack === undefined ? described : { ...described, stack: cut(scrub(stack), STACK_CHARACTERS_MAX) }
}

function describe(error: unknown, scrub: (text: string) => string, causesMax = CAUSES_MAX): SafeError {
  const isError = error instanceof Error
  const message = cut(scrub(isError ? error.message : String(error)), MESSAGE_CHARACTERS_MAX)
  if (!isError) return { type: typeof error, message }
  const { name, cause } = error
  const { code } = error as NodeJS.ErrnoException
  return {
    type: name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(cause === undefined || causesMax === 0 ? {} : { cause: describe(cause, scrub, causesMax - 1) }),
  }
}

export function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}...` : text
}
