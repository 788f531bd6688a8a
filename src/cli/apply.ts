/**
 * `powgate apply`, which writes all changes in one atomic step. A plan's `keysAdded` are API keys of the file, which has only their
 * hashes; its `keysMade` are new ones, whose secrets nothing but this command's output shows.
 */

import { createReadStream } from 'node:fs'
import { configFlag } from '../config/config.ts'
import { isSiteKey } from '../domain/site.ts'
import { type ApplyPlan, planApply } from '../sites/apply.ts'
import type { FileContent } from '../sites/export-file.ts'
import { authorOfCommand, commit, siteWarnings } from '../sites/sites.ts'
import { PROGRAM } from '../version.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'
import { type CommandEntry, fileValue, type Input } from './command.ts'
import { printChanges, printJson, printLine, requireOutput, sayIfOutputIsLost } from './output.ts'
import { nameOfStore, refuseLostNames, withStore } from './site-store.ts'

export const APPLY_COMMAND: CommandEntry = {
  name: 'apply',
  about: 'Create and change sites as a file says: all of them, or none if it has a mistake.',
  flags: {
    file: {
      about: 'File as site export writes it; - is standard input.',
      short: 'f',
      isRequired: true,
      value: fileValue('a file, or - for standard input'),
    },
    'dry-run': { about: 'Only print what would change.' },
    'disable-missing': { about: 'Disable sites that the file does not name, except that of the demo page.' },
    prune: {
      about: 'Delete sites that the file does not name, with their API keys, for good.',
      contradicts: 'disable-missing',
    },
  },
  example: '-f sites.json --dry-run',
  run: runApply,
}

/** An export of 70,000 sites with their API keys (`--whole`) is shorter. */
const FILE_BYTES_MAX = 64 * 2 ** 20
const PROBLEMS_MAX = 100

async function runApply(input: Input): Promise<void> {
  const author = authorOfCommand('apply')
  const isDry = input.has('dry-run')
  const missing = input.has('prune') ? 'delete' : input.has('disable-missing') ? 'disable' : 'stay'
  const content = await readContent(input.required('file'))
  const storeName = nameOfStore()
  const plan = await withStore(async store => {
    const plan = await planApply(store, content, missing, isDry)
    if (plan.problems.length > 0) throw new OperatorError(problemText(plan.problems))
    const drawn = plan.changes.filter(({ isNewSiteKey }) => isNewSiteKey)
    await refuseLostNames(
      store,
      drawn.map(({ after }) => after.name),
    )
    if (plan.keysMade.length > 0 && !isDry) requireOutput()
    if (plan.records.length > 0 && !isDry) await commit(store, plan.records, author, plan.revision)
    return plan
  })
  if (!isDry && plan.records.length > 0) {
    const ids = plan.keysMade.map(({ record }) => record.id).join(', ')
    const advice = ids && `: revoke the API keys that it made, because nobody knows them (${ids})`
    sayIfOutputIsLost(`apply has changed ${storeName}, but its output is lost${advice}.`)
  }
  if (input.has('json')) printJson({ ...planJson(plan, isDry), store: storeName })
  else printPlan(plan, isDry, storeName)
}

/** @param path "-" reads standard input. @throws OperatorError with a line for each mistake of the file */
async function readContent(path: string): Promise<FileContent> {
  const bytes = await readBytes(path)
  const { parseExportFile } = await import('../sites/parse-export-file.ts')
  const parsed = parseExportFile(bytes)
  if ('problems' in parsed) throw new OperatorError(problemText(parsed.problems))
  return parsed.value
}

async function readBytes(path: string): Promise<Buffer> {
  const stream = path === '-' ? process.stdin : createReadStream(path)
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of stream) {
      chunks.push(chunk as Buffer)
      length += (chunk as Buffer).length
      if (length > FILE_BYTES_MAX) throw new Error(`longer than ${FILE_BYTES_MAX} bytes`)
    }
  } catch (error) {
    throw new OperatorError(`--file: cannot read ${path}: ${systemErrorText(error)}`)
  }
  return Buffer.concat(chunks)
}

function problemText(problems: readonly string[]): string {
  const shown = problems.slice(0, PROBLEMS_MAX)
  const more = problems.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : []), 'nothing was written'].join('\n')
}

function planJson(plan: ApplyPlan, isDry: boolean) {
  const { changes, unchanged, keysAdded, keysMade } = plan
  // In a dry run, a new site has its name in place of a key.
  const apiKeysMade = keysMade.map(({ record: { siteKey, name }, apiKey }) => {
    return { siteKey: isSiteKey(siteKey) ? siteKey : null, name, ...(isDry ? {} : { apiKey }) }
  })
  return {
    dryRun: isDry,
    changed: changes.map(change => ({
      action: change.action,
      siteKey: isDry && change.isNewSiteKey ? null : change.after.siteKey,
      name: change.after.name,
      changes: change.fields,
      warnings: siteWarnings(change.after),
    })),
    unchanged,
    ...(keysAdded.length > 0 ? { apiKeysAdded: keysAdded.map(({ id }) => id) } : {}),
    ...(keysMade.length > 0 ? { apiKeysMade } : {}),
  }
}

const DONE = { create: 'created', change: 'changed', disable: 'disabled', delete: 'deleted' } as const

function printPlan(plan: ApplyPlan, isDry: boolean, storeName: string): void {
  const { changes, unchanged, keysAdded, keysMade } = plan
  if (changes.length + keysAdded.length + keysMade.length === 0) {
    const sites = unchanged === 1 ? '1 site is' : `${unchanged} sites are`
    printLine(`There is nothing to change in ${storeName}: ${sites} as the file says.`)
    return
  }
  for (const change of changes) {
    const { action, after, isNewSiteKey } = change
    const key = isDry && isNewSiteKey ? 'with a new key' : after.siteKey
    printLine(`${after.name} (${key}): ${isDry ? 'would be ' : ''}${DONE[action]}`)
    printChanges(change.fields, action === 'create')
    for (const warning of siteWarnings(after)) printLine(`    warning: ${warning}`)
  }
  for (const { id, siteKey } of keysAdded)
    printLine(`API key ${id} of ${siteKey}: ${isDry ? 'would be ' : ''}added`)
  for (const { record, apiKey } of keysMade)
    printLine(
      `API key ${record.name} of ${record.siteKey}: ${isDry ? 'would be made' : `${apiKey} (secret, not shown again)`}`,
    )
  const counts = Object.entries(DONE)
    .map(([action, done]) => ({ done, count: changes.filter(change => change.action === action).length }))
    .filter(({ count }) => count > 0)
    .map(({ done, count }) => `${count} ${done}`)
  const keys = { added: keysAdded.length, made: keysMade.length }
  for (const [done, count] of Object.entries(keys))
    if (count > 0) counts.push(`${count} API ${count === 1 ? 'key' : 'keys'} ${done}`)
  printLine(
    '',
    `${isDry ? 'Nothing was written. It would be in' : 'In'} ${storeName}: ${counts.join(', ')}; ${unchanged} as the file says already.`,
  )
  const withKey = new Set(
    [...keysAdded, ...keysMade.map(({ record }) => record)].map(({ siteKey }) => siteKey),
  )
  const keyless = changes.filter(({ action, after }) => action === 'create' && !withKey.has(after.siteKey))
  if (keyless.length === 0 || isDry) return
  printLine('', 'New sites have no API key yet:', '')
  for (const { after } of keyless) printLine(`  ${PROGRAM} key create ${after.siteKey}${configFlag()}`)
}
