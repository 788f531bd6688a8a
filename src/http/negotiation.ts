/** Which coding of a file a client accepts, and whether it has the file already (RFC 9110, 12.5.3 and 13.1.2). */

/** In order of preference if the client has none: shortest first. */
export const CODINGS = ['br', 'gzip', 'identity'] as const

export type Coding = (typeof CODINGS)[number]

const WEIGHT = /^[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*$/i

/**
 * The coding in `available` with the greatest weight. A client that accepts none of them gets `identity`, as the RFC allows,
 * because that is more useful than 406.
 *
 * @param acceptEncoding the header; empty means identity alone
 */
export function preferredCoding(acceptEncoding: string, available: readonly Coding[]): Coding {
  if (acceptEncoding === '') return 'identity'
  const weights = new Map<string, number>()
  for (const entry of acceptEncoding.toLowerCase().split(',')) {
    const [coding = '', parameter] = entry.split(';')
    // A weight that cannot be parsed counts as 0.
    const weight = parameter === undefined ? 1 : Number(WEIGHT.exec(parameter)?.[1] ?? 0)
    weights.set(coding.trim().replace(/^x-gzip$/, 'gzip'), weight)
  }
  // Identity that is not listed is acceptable, but never preferred.
  const others = weights.get('*')
  const weightOf = (coding: Coding) =>
    weights.get(coding) ?? others ?? (coding === 'identity' ? Number.MIN_VALUE : 0)
  let best: Coding = 'identity'
  let bestWeight = 0
  for (const coding of CODINGS) {
    if (!available.includes(coding) || weightOf(coding) <= bestWeight) continue
    best = coding
    bestWeight = weightOf(coding)
  }
  return best
}

const ENTITY_TAG = /(?:W\/)?("[^"]*")/g

/**
 * Whether the client's copy is current: weak comparison, as If-None-Match requires.
 *
 * @param ifNoneMatch the header: `*` or a list of entity tags, which may contain commas
 */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === '') return false
  if (ifNoneMatch.trim() === '*') return true
  for (const [, opaque] of ifNoneMatch.matchAll(ENTITY_TAG)) if (opaque === etag) return true
  return false
}
