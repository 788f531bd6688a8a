/** src/domain/pow.ts */

import { hash } from 'node:crypto'
import { checkProof } from '../../../src/domain/pow.ts'
import { proofInput } from '../../../src/protocol/proof.ts'
import type { Case } from '../case.ts'
import { DIFFICULTY, INPUTS, visits } from '../inputs.ts'
import { isNaiveProof } from '../naive.ts'

export const PROOF = 'proof check'
/** What node:crypto itself makes of garbage is not the proof check's, so it is measured alone. */
export const ONE_SHOT_HASH = 'proof check, its node:crypto hash alone'

const SOURCE = { area: 'domain/pow', source: 'src/domain/pow.ts' }

export const POW_CASES: readonly Case[] = [
  {
    name: PROOF,
    ...SOURCE,
    step: () => {
      const solutions = visits().map(({ solution }) => solution)
      const step = (index: number) => {
        const { nonce, counter } = solutions[index]!
        return checkProof(nonce, counter, DIFFICULTY) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const solutions = visits().map(({ solution }) => solution)
      const step = (index: number) => {
        const { nonce, counter } = solutions[index]!
        return isNaiveProof(nonce, counter, DIFFICULTY) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'createHash of the text, digest in hex',
  },
  {
    name: ONE_SHOT_HASH,
    ...SOURCE,
    step: () => {
      const inputs = visits().map(({ nonce, counter }) => Buffer.from(proofInput(nonce, counter)))
      const step = (index: number) => (hash('sha256', inputs[index]!, 'binary').length === 32 ? 1 : 0)
      return { kind: 'sync', count: INPUTS, step }
    },
  },
]
