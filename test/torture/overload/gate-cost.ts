/** The cost of overload detection without overload: two services side by side, one of them without detection. */

import { spreadOf } from '../../harness/measure.ts'
import { Rows, spreadText } from './rows.ts'
import { checkAnswers, microsecondsOf, type Stage, startStage } from './stage.ts'

const CONNECTIONS = 32
const PAIRS = 9
const TIMES_MAX = 1.02
const SHOWN = 0.01

/** @param like the stage whose run and store it uses */
export async function gateCost({ run, kind }: Pick<Stage, 'run' | 'kind'>): Promise<void> {
  const watched = await startStage(run, kind, new Rows())
  const unwatched = await startStage(run, kind, new Rows(), { POWGATE_OVERLOAD_MS: '0' })
  const costOf = async ({ visitors, base }: Stage, measureMs: number) => {
    const result = await visitors.run({
      ...base,
      connections: CONNECTIONS,
      visitorsPerSecond: Number.POSITIVE_INFINITY,
      warmUpMs: run.count(500, 100),
      measureMs,
    })
    checkAnswers(run, `${kind}, a closed loop`, result)
    return microsecondsOf(result, result.served)
  }
  for (const stage of [watched, unwatched]) await costOf(stage, run.count(3000, 200))
  const ratios: number[] = []
  const us = { watched: [] as number[], unwatched: [] as number[] }
  const measureMs = run.count(3000, 300)
  for (let pair = 0; pair < run.count(PAIRS, 1); pair++) {
    // The order alternates.
    const isWatchedFirst = pair % 2 === 0
    const first = await costOf(isWatchedFirst ? watched : unwatched, measureMs)
    const second = await costOf(isWatchedFirst ? unwatched : watched, measureMs)
    us.watched.push(isWatchedFirst ? first : second)
    us.unwatched.push(isWatchedFirst ? second : first)
    ratios.push(us.watched.at(-1)! / us.unwatched.at(-1)!)
  }
  const { median, min, max } = spreadOf(ratios)
  const isShown = (min > 1 || max < 1) && Math.abs(median - 1) > SHOWN
  const verdict =
    ratios.length === 1 ? 'one pair tells nothing' : isShown ? 'a difference' : 'no difference shown'
  run.figure(
    `${kind}: CPU of a visitor, with the gate against without it`,
    `with us ${spreadText(us.watched)} | without us ${spreadText(us.unwatched)} | ratio ${spreadText(ratios)} | ${verdict}`,
  )
  run.check(
    median <= TIMES_MAX || !isShown || !run.isFull,
    `${kind}: the gate makes a visitor ${median.toFixed(3)} times as dear`,
  )
  await watched.end()
  await unwatched.end()
}
