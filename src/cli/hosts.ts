import { differences, viewOf } from '../store/hosts.ts'
import type { CommandEntry, Input } from './command.ts'
import { dateText, printJson, printLine, printTable } from './output.ts'
import { commandSettings, withStore } from './site-store.ts'

export const HOSTS_COMMAND: CommandEntry = {
  name: 'hosts',
  about: 'List the hosts that share the store, and what differs between them.',
  run,
}

async function run(input: Input): Promise<void> {
  const { living } = await withStore(store => store.livingHosts())
  const hosts = [...living].sort((one, other) => (one.name < other.name ? -1 : 1))
  const found = hosts.flatMap((one, index) =>
    hosts.slice(index + 1).flatMap(other => differences(one, other).map(line => `${one.name}: ${line}`)),
  )
  if (input.has('json')) return printJson({ hosts: hosts.map(viewOf), differences: found })
  if (commandSettings().redis === undefined)
    return printLine('The embedded store has one host: this machine.')
  if (hosts.length === 0) return printLine('No host runs.')
  const rows = hosts.map(({ name, version, startedAt, workers }) => {
    return [name, version, dateText(startedAt), String(workers)]
  })
  printTable(['host', 'version', 'since', 'workers'], rows)
  printLine('', ...(found.length === 0 ? ['They agree.'] : found))
}
