/** src/domain/score.ts, difficulty.ts, sources.ts and fingerprints.ts */

import { difficultyFor } from '../../../src/domain/difficulty.ts'
import { FingerprintWatch } from '../../../src/domain/fingerprints.ts'
import { NEW_SOURCE, SourceWatch } from '../../../src/domain/sources.ts'
import type { Case } from '../case.ts'
import { addressKeyOf, DIFFICULTY, INPUTS, NOW_MS, SITE_TAG, scoreFor, THRESHOLD, visits } from '../inputs.ts'
import { seededRandom } from '../random.ts'

const BOUNDS = { base: 18, min: 16, max: 28 }

export const JUDGING_CASES: readonly Case[] = [
  {
    name: 'score',
    area: 'domain/score',
    source: 'src/domain/score.ts',
    step: () => {
      const all = visits()
      const step = (index: number) => {
        const { solution, issuedAtMs } = all[index]!
        return scoreFor(solution, issuedAtMs, DIFFICULTY) >= THRESHOLD ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
  },
  {
    name: 'difficulty',
    area: 'domain/difficulty',
    source: 'src/domain/difficulty.ts',
    step: () => {
      const random = seededRandom(5)
      const inputs = Array.from({ length: INPUTS }, () => ({
        addressChallenges: random() % 30,
        addressLimit: 30,
        addressFailures: random() % 8,
        source: NEW_SOURCE,
        siteRate: random() % 100,
        siteRateUsual: random() % 20,
      }))
      const step = (index: number) => (difficultyFor(BOUNDS, inputs[index]!) >= BOUNDS.min ? 1 : 0)
      return { kind: 'sync', count: INPUTS, step }
    },
  },
  {
    name: 'a source',
    area: 'domain/sources',
    source: 'src/domain/sources.ts',
    step: () => {
      const all = visits()
      const watch = new SourceWatch(2, 1)
      const step = (index: number) => {
        const { address } = all[index]!
        watch.accepted(address, NOW_MS)
        return watch.of(address, NOW_MS).networkBits >= 0 ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
  },
  {
    name: 'note a fingerprint',
    area: 'domain/fingerprints',
    source: 'src/domain/fingerprints.ts',
    step: () => {
      const all = visits().map(({ solution, address }) => ({
        fingerprint: solution.fingerprintHash,
        network: addressKeyOf(address),
      }))
      const watch = new FingerprintWatch(2, 1)
      const step = (index: number) => {
        const { fingerprint, network } = all[index]!
        return watch.note(SITE_TAG, fingerprint, network, NOW_MS) >= 1 ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
  },
]
