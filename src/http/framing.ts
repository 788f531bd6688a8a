/** Where a request's body ends, as far as servers agree on it. */

export type Framing =
  | 'length'
  /** Its answer is the last of the connection: see `Exchange`. */
  | 'chunks'
  /** Another server may understand it differently, and take for the next request what is this one's body. */
  | 'ambiguous'

/** uWebSockets.js takes any transfer coding for chunks. */
export function framingOf(transferEncoding: string): Framing {
  return transferEncoding.toLowerCase() === 'chunked' ? 'chunks' : 'ambiguous'
}
