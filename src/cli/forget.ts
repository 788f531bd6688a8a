/** `powgate forget`: what the store has about an address is deleted, and what else may have it is listed. */

import { AddressSet, formatAddress, formatNetwork, parseAddress } from '../addresses/address.ts'
import { resolveSecrets } from '../config/secrets.ts'
import { AddressTags } from '../domain/address-tags.ts'
import { ADDRESS_FIELDS } from '../domain/audit.ts'
import { Keyring } from '../domain/keyring.ts'
import type { SiteRecord } from '../domain/site.ts'
import { completed, FIELDS, valueIn } from '../domain/site-fields.ts'
import { OperatorError } from '../words/errors.ts'
import type { CommandEntry, Input, Positional } from './command.ts'
import { printJson, printLine, sayIfOutputIsLost } from './output.ts'
import { commandSettings, hasSecret, withStore } from './site-store.ts'

const ADDRESS: Positional = {
  name: 'ADDRESS',
  expects: 'an IP address',
  accepts: text => parseAddress(text) !== undefined,
}

export const FORGET_COMMAND: CommandEntry = {
  name: 'forget',
  about: 'Delete what the store has about an address, and say where else it may be kept.',
  positionals: [ADDRESS],
  example: '203.0.113.7',
  run: runForget,
}

async function runForget(input: Input): Promise<void> {
  const address = parseAddress(input.required(ADDRESS.name))!
  const config = commandSettings()
  if (!hasSecret(config))
    throw new OperatorError(
      'there is no secret, and without it nobody can tell which records are of an address: set POWGATE_SECRETS as the service does, or put back its file `secret` in the data directory',
    )
  const { signing, others } = new Keyring(resolveSecrets(config))
  // A record's key was made with the secret that signed at that time, which may be any of them.
  const addressKeys = [signing, ...others].map(key =>
    new AddressTags(key).keyOf(address, config.ipv6PrefixBits),
  )
  const { removed, lists } = await withStore(async store => ({
    removed: await store.forget(addressKeys), // each key begins with that of the owner's network, whose rates go too
    lists: (await store.listSites()).flatMap(site => listsWith(site, address)),
  }))
  const [text, network] = [formatAddress(address), formatNetwork(address)]
  sayIfOutputIsLost(`Removed ${removed} records of ${text}.`)
  if (input.has('json')) return printJson({ address: text, network, removed, lists })
  printLine(`Removed ${removed} records of ${text}, with the rates of its network ${network}.`)
  printLine('', 'What else may hold it:')
  for (const { siteKey, field, range } of lists)
    printLine(`  ${field} of ${siteKey}: ${range} (site update, or apply)`)
  printLine(
    `  the log, for ${network} or the whole address: powgate explain ${text} --log FILE`,
    '  the logs of proxies and backends, and what backends keep of a redemption, which tells them the address',
    '  the memory of workers, for some minutes',
    '  backups, dumps and append-only files of the store: only under tags that nobody can read without the secret',
  )
}

/** The settings of a site that list the address, each with the range that has it. */
function listsWith(site: SiteRecord, address: string) {
  const settings = completed(site)
  return FIELDS.filter(({ name }) => ADDRESS_FIELDS.includes(name)).flatMap(field =>
    (valueIn(settings, field) as readonly string[])
      .filter(range => new AddressSet([range]).has(address))
      .map(range => ({ siteKey: site.siteKey, field: field.name, range })),
  )
}
