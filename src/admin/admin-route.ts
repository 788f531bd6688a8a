/** What is served on the admin port. */

import type { IncomingMessage, ServerResponse } from 'node:http'

export interface AdminRoute {
  /** The whole path, without a query. */
  readonly path: string
  /** Answers GET and HEAD; for HEAD, Node.js leaves the body out. What it throws becomes a 500. */
  handle(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void | Promise<void>
}
