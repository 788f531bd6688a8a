/** Starts and stops the stores that are measured. */

import type { StoreKind } from '../../test/harness/service.ts'
import { startEmbedded } from './embedded.ts'
import { startRedis } from './redis.ts'
import type { Subject, SubjectOptions } from './subject.ts'

const running = new Set<Promise<Subject>>()
let isStopped = false

export async function withSubject<Result>(
  kind: StoreKind,
  use: (subject: Subject) => Promise<Result>,
  options: SubjectOptions = {},
): Promise<Result> {
  if (isStopped) throw new Error('the bench was stopped')
  const starting = kind === 'redis' ? startRedis(options) : startEmbedded(options)
  running.add(starting)
  try {
    return await use(await starting)
  } finally {
    // Once the bench is stopped, who stopped it ends this one too.
    if (running.delete(starting)) await (await starting).stop()
  }
}

/** Ends the stores that run or start now, for a bench that is interrupted; no other will be started. */
export async function stopSubjects(): Promise<void> {
  isStopped = true
  const subjects = [...running]
  running.clear()
  await Promise.all(subjects.map(async starting => (await starting).stop()))
}
