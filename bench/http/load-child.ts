/** Entry of the load generator's process. It runs the commands of load-process.ts, one at a time. */

import { runLoad } from './load.ts'
import type { LoadAnswer, LoadOrder } from './load-process.ts'
import { runPacedLoad } from './paced-load.ts'
import { sendAll } from './send-all.ts'
import { buildTraffic, type Traffic } from './traffic.ts'

let traffic: Traffic | undefined

async function obey(order: LoadOrder): Promise<LoadAnswer> {
  switch (order.type) {
    case 'build':
      traffic = undefined // first, so that never two of them take memory
      traffic = buildTraffic(order.spec)
      return { type: 'built' }
    case 'run':
      return { type: 'measured', result: await runLoad(order.spec, built()) }
    case 'pace':
      return { type: 'paced', result: await runPacedLoad(order.spec, built()) }
    case 'send-all':
      return { type: 'sent', result: await sendAll(order.spec, buildTraffic(order.traffic)) }
  }
}

function built(): Traffic {
  if (traffic === undefined) throw new Error('there are no requests')
  return traffic
}

process.on('message', (order: LoadOrder) => {
  obey(order).then(
    answer => process.send!(answer),
    (error: Error) => process.send!({ type: 'failed', problem: error.message } satisfies LoadAnswer),
  )
})
process.on('disconnect', () => process.exit()) // the bench has gone
