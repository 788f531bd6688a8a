/** The commands `powgate key ...`, for the API keys of sites. Those that change keys do it by sites/sites.ts. */

import { configFlag } from '../config/config.ts'
import { API_KEY_ID_PATTERN, apiKeyId } from '../domain/site.ts'
import { NAME } from '../domain/value-forms.ts'
import { whenMs } from '../sites/rules.ts'
import { authorOfCommand, createApiKey, findSite, type KeyOptions, updateApiKey } from '../sites/sites.ts'
import { PROGRAM } from '../version.ts'
import { UsageError } from '../words/errors.ts'
import type { CommandEntry, Flag, Input, Positional } from './command.ts'
import { dateText, printJson, printLine, printPairs, requireOutput, sayIfOutputIsLost } from './output.ts'
import { SITE_KEY } from './site-flags.ts'
import { nameOfStore, withStore } from './site-store.ts'
import { type ApiKeyView, apiKeyView, findKeys, printKeys } from './views.ts'

const KEY_ID_FORM = new RegExp(`^${API_KEY_ID_PATTERN}$`)

const KEY_ID: Positional = {
  name: 'KEY_ID',
  expects: 'the 8 letters or digits after the sk_ of an API key',
  accepts: text => KEY_ID_FORM.test(text),
  suggest: apiKeyId,
  isSecret: true, // because somebody may pass the whole key
}

const EXAMPLE_KEY_ID = 'k3yId0Xy'

const KEY_FLAGS = {
  name: {
    about: 'Name of the key, for example the backend that has it.',
    value: { placeholder: 'NAME', ...NAME },
  },
  expires: {
    about: 'When the key expires: a date, a time, or a duration from now. Default: never.',
    value: {
      placeholder: 'WHEN',
      expects:
        'a time in the future: 2027-01-31 (its start in UTC), 2027-01-31T12:00Z, or a duration such as 90d or 12h',
      accepts: text => (whenMs(text, 'ahead') ?? 0) > Date.now(),
    },
  },
} as const satisfies Record<string, Flag>

const UPDATE_FLAGS = {
  ...KEY_FLAGS,
  'no-expiry': { about: 'The key never expires.', contradicts: 'expires' },
} as const satisfies Record<string, Flag>

export const KEY_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'key create',
    about: 'Create another API key for a site. It is shown only now.',
    positionals: [SITE_KEY],
    flags: KEY_FLAGS,
    example: 'site_0123456789ABCDEFabcdef --name backend --expires 90d',
    run: runCreate,
  },
  {
    name: 'key list',
    about: 'List the API keys of one site or of all, with their last use (to the minute), expiry and state.',
    positionals: [{ ...SITE_KEY, isOptional: true }],
    example: 'site_0123456789ABCDEFabcdef',
    run: runList,
  },
  {
    name: 'key update',
    about: 'Change the name or the expiry of an API key. Workers take it over within two seconds.',
    positionals: [KEY_ID],
    flags: UPDATE_FLAGS,
    example: `${EXAMPLE_KEY_ID} --expires 7d`,
    run: runUpdate,
  },
  {
    name: 'key revoke',
    about: 'Revoke an API key for good. Workers refuse it within two seconds.',
    positionals: [KEY_ID],
    example: EXAMPLE_KEY_ID,
    run: input => runChange(input, 'key revoke', { revokedAt: Date.now() }, () => 'is revoked'),
  },
]

async function runCreate(input: Input): Promise<void> {
  const siteKey = input.required(SITE_KEY.name)
  const author = authorOfCommand('key create')
  requireOutput()
  const storeName = nameOfStore()
  const { record, apiKey } = await withStore(async store => {
    await findSite(store, siteKey)
    return createApiKey(store, siteKey, keyOptions(input), author)
  })
  const { id, createdAt, name, expiresAt } = apiKeyView(record, undefined)
  sayIfOutputIsLost(
    `The API key ${id} was created in ${storeName}, but nobody knows it. Revoke it, and make another: ${PROGRAM} key revoke ${id}${configFlag()}`,
  )
  if (input.has('json'))
    return printJson({ id, siteKey, apiKey, name, createdAt, expiresAt, store: storeName })
  printLine(`The API key was created in ${storeName}. It is secret and is not shown again: keep it now.`, '')
  printPairs([
    ['API key', apiKey],
    ['key id', id],
    ['site key', siteKey],
    ...(name === null ? [] : [['name', name] as const]),
    ['created', dateText(createdAt)],
    ['expires', expiryText(expiresAt)],
  ])
}

async function runList(input: Input): Promise<void> {
  const siteKey = input.text(SITE_KEY.name)
  const keys = await withStore(async store => {
    if (siteKey !== undefined) await findSite(store, siteKey)
    return findKeys(store, siteKey)
  })
  if (input.has('json')) printJson(keys)
  else printKeys(keys)
}

async function runUpdate(input: Input): Promise<void> {
  if (!Object.keys(UPDATE_FLAGS).some(flag => input.has(flag)))
    throw new UsageError(`key update: expected something to change; see ${PROGRAM} key update --help`)
  const renamed = input.has('name')
  await runChange(input, 'key update', keyOptions(input), ({ name, expiresAt }) =>
    [...(renamed ? [`is called "${name}" and`] : []), `ends: ${expiryText(expiresAt)}`].join(' '),
  )
}

async function runChange(
  input: Input,
  command: string,
  change: Parameters<typeof updateApiKey>[2],
  outcome: (key: ApiKeyView) => string,
): Promise<void> {
  const author = authorOfCommand(command)
  const storeName = nameOfStore()
  const key = await withStore(async store => {
    const id = input.required(KEY_ID.name)
    const uses = await store.readUses([id]) // read first: failing after the change, the command would seem to have changed nothing
    return apiKeyView(await updateApiKey(store, id, change, author), uses.get(id))
  })
  const text = `In ${storeName} the API key ${key.id} of ${key.siteKey} ${outcome(key)}.`
  sayIfOutputIsLost(text)
  if (input.has('json')) printJson({ ...key, store: storeName })
  else printLine(text)
}

function keyOptions(input: Input): KeyOptions {
  const name = input.text('name')?.trim()
  const expires = input.text('expires')
  return {
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : { expiresAt: whenMs(expires, 'ahead')! }),
    ...(input.has('no-expiry') ? { expiresAt: null } : {}),
  }
}

function expiryText(expiresAt: number | null): string {
  return expiresAt === null ? 'never' : dateText(expiresAt)
}
