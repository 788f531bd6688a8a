/** Entry of the load generator's process: does what load-process.ts sends, one thing at a time. */

import { runLoad } from './load.ts'
import type { LoadAnswer, LoadOrder } from './load-process.ts'
import { buildTraffic, type Traffic } from './traffic.ts'

let traffic: Traffic | undefined

async function obey(order: LoadOrder): Promise<LoadAnswer> {
  switch (order.type) {
    case 'build':
      traffic = undefined // first, so that never two of them take memory
      traffic = buildTraffic(order.spec)
      return { type: 'built' }
    case 'run':
      if (traffic === undefined) throw new Error('there are no requests')
      return { type: 'measured', result: await runLoad(order.spec, traffic) }
  }
}

process.on('message', (order: LoadOrder) => {
  obey(order).then(
    answer => process.send!(answer),
    (error: Error) => process.send!({ type: 'failed', problem: error.message } satisfies LoadAnswer),
  )
})
process.on('disconnect', () => process.exit()) // the bench has gone
