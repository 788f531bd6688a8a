/** `powgate key ...`: a site may have several API keys, so that one can be replaced with no downtime. */

import { apiKeyId } from '../domain/site.ts'
import type { Command, Input, Positional } from './command.ts'
import { printFields, printJson, printLine, timeText } from './output.ts'
import { JSON_FLAG, SITE_KEY } from './site-flags.ts'
import { withStore } from './site-store.ts'
import { createApiKey, findSite, revokeApiKey } from './sites.ts'
import { printKeys, publicKeys } from './views.ts'

const KEY_ID: Positional = {
  name: 'KEY_ID',
  expects: 'the 8 letters or digits after the sk_ of an API key',
  accepts: text => /^[0-9A-Za-z]{8}$/.test(text),
  suggest: apiKeyId,
  isSecret: true, // somebody will pass the whole key
}

export const KEY_COMMANDS: readonly Command[] = [
  {
    name: 'key create',
    about: 'Create one more API key of a site, which is shown only now.',
    positionals: [SITE_KEY],
    flags: { json: JSON_FLAG },
    example: 'site_0123456789ABCDEFabcdef',
    run: runCreate,
  },
  {
    name: 'key list',
    about: 'List the API keys of a site, or of all.',
    positionals: [{ ...SITE_KEY, isOptional: true }],
    flags: { json: JSON_FLAG },
    example: 'site_0123456789ABCDEFabcdef',
    run: runList,
  },
  {
    name: 'key revoke',
    about: 'Refuse an API key from now on; it cannot be undone. Workers see it within two seconds.',
    positionals: [KEY_ID],
    flags: { json: JSON_FLAG },
    example: 'k3yId0Xy',
    run: runRevoke,
  },
]

async function runCreate(input: Input): Promise<void> {
  const siteKey = input.required(SITE_KEY.name)
  const { record, apiKey } = await withStore(async store => {
    await findSite(store, siteKey)
    return createApiKey(store, siteKey)
  })
  const { id, createdAt } = record
  if (input.has('json')) {
    printJson({ id, siteKey, apiKey, createdAt })
    return
  }
  printLine('The API key was created. It is secret and is not shown again: keep it now.\n')
  printFields([
    ['API key', apiKey],
    ['key id', id],
    ['site key', siteKey],
    ['created', timeText(createdAt)],
  ])
}

async function runList(input: Input): Promise<void> {
  const siteKey = input.text(SITE_KEY.name)
  const records = await withStore(async store => {
    if (siteKey !== undefined) await findSite(store, siteKey)
    return store.listApiKeys()
  })
  const keys = publicKeys(records.filter(key => siteKey === undefined || key.siteKey === siteKey))
  if (input.has('json')) printJson(keys)
  else printKeys(keys)
}

async function runRevoke(input: Input): Promise<void> {
  const record = await withStore(store => revokeApiKey(store, input.required(KEY_ID.name)))
  const [key] = publicKeys([record])
  if (input.has('json')) printJson(key)
  else printLine(`The API key ${record.id} of ${record.siteKey} is revoked.`)
}
