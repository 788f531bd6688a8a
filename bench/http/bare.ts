/**
 * The baseline of all ratios: a uWebSockets.js server that reads each request's body and answers with a constant. Its
 * argument is the length of a whole answer in bytes, head included.
 */

import { App } from 'uWebSockets.js'
import { freePort } from '../../test/harness/ports.ts'

/** The head that uWebSockets.js writes by itself; its date and the length of a body from 100 to 999 bytes vary. */
const HEAD =
  'HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nuWebSockets: 20\r\nContent-Length: 100\r\n\r\n'
const body = Buffer.alloc(Math.max(0, Number(process.argv[2]) - HEAD.length), 'x')
const ignoreAbort = () => {}
const port = await freePort()

App()
  .get('/*', response => {
    response.end(body)
  })
  .post('/*', response => {
    response.onAborted(ignoreAbort)
    response.onData((_, isLast) => {
      if (isLast) response.end(body)
    })
  })
  .listen('127.0.0.1', port, socket => {
    if (!socket) throw new Error(`the port ${port} is taken`)
    process.send!(port)
  })

process.on('disconnect', () => process.exit()) // the bench has gone
