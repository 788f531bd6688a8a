/** `powgate policy ...` */

import { DEFAULT_POLICY } from '../domain/policy.ts'
import { SITE_FIELDS } from '../domain/site-fields.ts'
import { DEVICE_CLASSES, meanSeconds } from '../domain/solve-time.ts'
import { AdminError } from '../sites/sites.ts'
import { Replay } from '../trace/replay.ts'
import type { CommandEntry, Input } from './command.ts'
import { fileValue, readBytes, readObject } from './files.ts'
import { printJson, printLine, printTable } from './output.ts'

export const POLICY_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'policy replay',
    about: 'Let a policy decide once more what the service recorded, and tell the differences.',
    flags: {
      policy: {
        about: 'Policy; what it leaves out is as in the live one.',
        isRequired: true,
        value: fileValue('a JSON file with numbers of a policy'),
      },
      trace: {
        about: 'Trace of one worker (POWGATE_TRACE_FILE).',
        isRequired: true,
        value: { ...fileValue('the path of a trace'), repeats: true },
      },
    },
    example: '--policy gentle.json --trace /var/lib/powgate/trace.0 --trace /var/lib/powgate/trace.1',
    run: runReplay,
  },
]

async function runReplay(input: Input): Promise<void> {
  const policy = await readObject('policy', input.required('policy'), SITE_FIELDS.shadow.kind)
  const replay = new Replay({ ...DEFAULT_POLICY, ...policy })
  for (const path of input.texts('trace')!) replay.read(path, String(await readBytes('trace', path)))
  const { challenges, accepted, failed, byDifference, different, hashes } = replay
  if (challenges === 0) throw new AdminError('there is no challenge in what was recorded')
  const delays = DEVICE_CLASSES.map(device => {
    const mean = (sum: number) => Number(meanSeconds(device, sum / challenges).toPrecision(3))
    const { name, share } = device
    return { device: name, share, recorded: mean(hashes.recorded), replayed: mean(hashes.replayed) }
  })
  if (input.has('json')) {
    printJson({ challenges, accepted, failed, byDifference, delays, different })
    return
  }
  printLine(`${challenges} challenges, ${accepted} accepted proofs, ${failed} failed verifications`, '')
  const differences = Object.entries(byDifference).sort(([a], [b]) => Number(a) - Number(b))
  printTable(
    ['bits', 'challenges', 'share'],
    differences.map(([bits, count]) => [
      bits === '0' ? 'the same' : bits.replace(/^(?=\d)/, '+'),
      String(count),
      `${((100 * count) / challenges).toFixed(1)} %`,
    ]),
  )
  printLine('', 'Mean seconds of a solution, as recorded and by the policy:', '')
  printTable(
    ['device', 'of visitors', 'recorded', 'policy'],
    delays.map(({ device, share, recorded, replayed }) =>
      [device, `${Math.round(100 * share)} %`, recorded, replayed].map(String),
    ),
  )
}
