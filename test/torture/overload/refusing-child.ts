/** Entry of a process that refuses every request for overload, to measure the cost of a refusal. */

import { startRefusingServer } from '../../harness/refusing-server.ts'

process.on('disconnect', () => process.exit()) // the case has ended
const { port } = await startRefusingServer(['127.0.0.0/8'])
process.send!(port)
