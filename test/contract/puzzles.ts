/** The contract (docs/reference/contract.md), §2.1 and §2.5, decided: a site's puzzle, and what a change of it does to challenges in flight. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Solution } from '../../src/protocol/wire.ts'
import { solutionOf, solve } from '../harness/client.ts'
import type { Answer } from '../harness/http.ts'
import { ALWAYS_EASY, EASY, type TestSite } from '../harness/service.ts'
import { assertFailedResult, assertPassed } from './answers.ts'
import { type Subject, untilAll, type Visitor } from './support.ts'

export function puzzleTests(subject: Subject): void {
  const challengeOf = async (visitor: Visitor, algorithm: string) => {
    const answer = await visitor.challenge()
    assert.deepEqual([answer.status, answer.json.algorithm], [200, algorithm])
    return answer.json as { nonce: string; difficulty: number; expiresAt: number }
  }

  const untilIssued = (site: TestSite, algorithm: string) => {
    const isIssued = ({ json }: Answer) => json.algorithm === algorithm
    return untilAll(`every worker issues ${algorithm}`, isIssued, () => subject.visitor(site).challenge())
  }

  test('§2.1 algorithm, decided: hashwx where the site says so; its base is 17 where the site names none', async () => {
    const visitor = subject.visitor(await subject.service.createSite({ puzzle: 'hashwx' }))
    assert.equal((await challengeOf(visitor, 'hashwx')).difficulty, 17)
    await visitor.passed()
  })

  test('§4.2, decided: a solution of the other puzzle is a failed result, which spends nothing', async () => {
    for (const [own, other] of [
      ['sha256', 'hashwx'],
      ['hashwx', 'sha256'],
    ] as const) {
      const visitor = await subject.visitorOf({ puzzle: own, difficulty: ALWAYS_EASY })
      const { nonce, difficulty } = await challengeOf(visitor, own)
      const wrong = solve(nonce, difficulty, other)
      assertFailedResult(await visitor.verify(solutionOf(nonce, wrong)))
      const right = solve(nonce, difficulty, own)
      assertPassed(await visitor.verify(solutionOf(nonce, right)))
    }
  })

  test('a site that changes its puzzle loses no challenge under way, in either direction', async () => {
    const site = await subject.createSite({ difficulty: ALWAYS_EASY })
    const [first, second] = [subject.visitor(site), subject.visitor(site)]
    const before: Solution = await first.solved()
    await subject.changeSite(site.siteKey, { puzzle: 'hashwx' })
    await untilIssued(site, 'hashwx')
    const between: Solution = await second.solved()
    assertPassed(await first.verify(before))
    await subject.changeSite(site.siteKey, { puzzle: 'sha256' })
    await untilIssued(site, 'sha256')
    assertPassed(await second.verify(between))
  })

  test('a challenge under way is priced in bits of its own puzzle: at the same solving time SHA-256 asks for three more', async () => {
    const difficulty = { ...EASY, solveMs: 300 }
    const visitor = await subject.visitorOf({ puzzle: 'hashwx', difficulty })
    const solution = await visitor.solved()
    const { siteKey } = visitor.site
    // 300 ms are 16 bits of HashWX, as the challenge has, but 19 of SHA-256, 21 with the raise: it would be refused as too cheap.
    await subject.changeSite(siteKey, { raise: { bits: 2, until: Date.now() + 60_000 } })
    await subject.changeSite(siteKey, { puzzle: 'sha256' })
    await untilIssued(visitor.site, 'sha256')
    assertPassed(await visitor.verify(solution))
  })
}
