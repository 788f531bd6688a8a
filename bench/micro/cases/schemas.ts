/** src/http/schemas.ts */

import type { Case } from '../case.ts'
import { INPUTS, redemptionIn, solutionIn, visits } from '../inputs.ts'
import { naiveRedemption, naiveSolution } from '../naive.ts'

const SOURCE = { area: 'http/schemas', source: 'src/http/schemas.ts' }
const naiveNote = 'JSON.parse, fields checked by hand'

/** What a customer's backend posts. */
export function redemptionBodies(): Buffer[] {
  return visits().map(({ token, addressText }) =>
    Buffer.from(JSON.stringify({ token, expectedIp: addressText })),
  )
}

export const SCHEMA_CASES: readonly Case[] = [
  {
    name: 'parse a /verify body',
    ...SOURCE,
    step: () => {
      const bodies = visits().map(({ body }) => body)
      const step = (index: number) => (solutionIn(bodies[index]!) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const bodies = visits().map(({ body }) => body)
      const step = (index: number) => (naiveSolution(bodies[index]!) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote,
  },
  {
    name: 'parse a /verify-token body',
    ...SOURCE,
    step: () => {
      const bodies = redemptionBodies()
      const step = (index: number) => (redemptionIn(bodies[index]!) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const bodies = redemptionBodies()
      const step = (index: number) => (naiveRedemption(bodies[index]!) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: `${naiveNote}; expectedIp may be any text`,
  },
]
