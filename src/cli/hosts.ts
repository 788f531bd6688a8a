/** `powgate hosts`: prints the hosts of the store and how they differ (store/hosts.ts). */

import { differences, viewOf } from '../store/hosts.ts'
import type { CommandEntry, Input } from './command.ts'
import { dateText, printJson, printLine, printTable } from './output.ts'
import { commandSettings, withStore } from './site-store.ts'

export const HOSTS_COMMAND: CommandEntry = {
  name: 'hosts',
  about: 'List the hosts that share the store, and what differs between them: exit code 1 if anything does.',
  run,
}

async function run(input: Input): Promise<number> {
  const { living } = await withStore(store => store.livingHosts())
  const hosts = [...living].sort((one, other) => (one.name < other.name ? -1 : 1))
  const found = hosts.flatMap((one, index) =>
    hosts.slice(index + 1).flatMap(other => differences(one, other).map(line => `${one.name}: ${line}`)),
  )
  const isFine = found.length === 0
  if (input.has('json')) printJson({ hosts: hosts.map(viewOf), differences: found })
  else if (commandSettings().redis === undefined) printLine('The embedded store has one host: this machine.')
  else if (hosts.length === 0)
    printLine(
      'No host has said within the last seconds that it runs. None can while Redis is away or full: powgate check',
    )
  else {
    const rows = hosts.map(({ name, version, startedAt, workers }) => {
      return [name, version, dateText(startedAt), String(workers)]
    })
    printTable(['host', 'version', 'since', 'workers'], rows)
    printLine('', ...(isFine ? ['They agree.'] : found))
  }
  return isFine ? 0 : 1
}
