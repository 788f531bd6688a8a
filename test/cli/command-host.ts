/** A process that runs one call of the built command line after another: a process for each call takes ten times as long. */

import { eventually } from '../harness/eventually.ts'
import { carryOut } from '../harness/processes.ts'

export interface Call {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const { answer } = await import(new URL('../../dist/cli/run.js', import.meta.url).href)
const { PATH, HOME } = process.env

async function run({ args, env }: Call): Promise<Ended> {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, { PATH, HOME, ...env })
  const [out, err] = [process.stdout, process.stderr].map(written)
  const code: number = await answer(args)
  // A process of its own would not end as long as anything is open.
  const open = () => process.getActiveResourcesInfo()
  const isClosed = () => open().every(resource => OPEN_WHILE_IDLE.includes(resource))
  await eventually(60_000, () => `${open()} in place of ${OPEN_WHILE_IDLE}`, isClosed)
  return { code, out: out!.join(''), err: err!.join('') }
}

/** What is written from now on, instead of writing it. */
function written(stream: NodeJS.WriteStream): string[] {
  const texts: string[] = []
  stream.write = (text: string | Uint8Array) => texts.push(String(text)) > 0
  return texts
}

carryOut(run)
/** Kinds of handles that this process has open before its first call, the channel that `carryOut` listens on included. */
const OPEN_WHILE_IDLE = process.getActiveResourcesInfo()
