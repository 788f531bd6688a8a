/**
 * What everything is compared with: uWebSockets.js answering every request with a constant body of as many bytes as
 * its argument says. It looks at nothing, not even at request bodies, so it is the least that a request can cost.
 */

import { App, us_socket_local_port } from 'uWebSockets.js'

const body = 'x'.repeat(Number(process.argv[2]))

App()
  .any('/*', response => {
    response.end(body)
  })
  .listen('127.0.0.1', 0, socket => {
    if (!socket) throw new Error('cannot listen on 127.0.0.1')
    process.send!(us_socket_local_port(socket))
  })

process.on('disconnect', () => process.exit()) // the bench has gone
