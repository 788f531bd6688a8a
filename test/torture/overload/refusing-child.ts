/** Entry of a process that refuses every request for overload: what a refusal costs is measured at it. */

import { startRefusingServer } from '../../support/refusing-server.ts'

process.on('disconnect', () => process.exit()) // the case has gone
const { port } = await startRefusingServer(['127.0.0.0/8'])
process.send!(port)
