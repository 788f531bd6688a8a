/** The commands `powgate site ...`. Those that change sites do it by sites/sites.ts, which also writes the audit log. */

import { configFlag } from '../config/config.ts'
import { isNotDemo } from '../demo/site.ts'
import { CONTRACT_LIMITS } from '../domain/endpoint.ts'
import { apiKeyId, SITE_DEFAULTS, type SiteRecord } from '../domain/site.ts'
import { integer } from '../domain/value-forms.ts'
import { exportFile, inOrderOfCreation, noSitesText, restoreSteps } from '../sites/export-file.ts'
import { durationMs } from '../sites/rules.ts'
import { serviceUrl } from '../sites/service-files.ts'
import {
  authorOfCommand,
  commit,
  createSite,
  deletion,
  findSite,
  siteWarnings,
  updateSite,
} from '../sites/sites.ts'
import { hasServedFrom } from '../store/embedded/data-dir.ts'
import type { SiteStore } from '../store/store.ts'
import { PROGRAM } from '../version.ts'
import { OperatorError, UsageError } from '../words/errors.ts'
import type { CommandEntry, FlagValue, Input } from './command.ts'
import { printJson, printLine, printPairs, printTable, requireOutput, sayIfOutputIsLost } from './output.ts'
import { CLEARING_FLAGS, givenFields, SITE_FLAGS, SITE_KEY, withGiven } from './site-flags.ts'
import {
  commandSettings,
  nameOfStore,
  recordsOfService,
  refuseLostNames,
  remembered,
  withStore,
} from './site-store.ts'
import { findKeys, printKeys, siteLines } from './views.ts'

const EXAMPLE_SITE_KEY = 'site_0123456789ABCDEFabcdef'

const [RAISE_MS_MIN, RAISE_MS_MAX] = [60_000, 86_400_000]
const RAISE_DURATION: FlagValue = {
  placeholder: 'TIME',
  expects: 'a duration from 1m to 1d, such as 2h',
  accepts: text => {
    const duration = durationMs(text) ?? 0
    return duration >= RAISE_MS_MIN && duration <= RAISE_MS_MAX
  },
}

export const SITE_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'site create',
    about: 'Create a site and its first API key. The key is shown only now.',
    flags: { ...SITE_FLAGS, name: { ...SITE_FLAGS.name!, isRequired: true } },
    example: '--name shop --origin https://shop.example --origin https://*.shop.example',
    run: runCreate,
  },
  { name: 'site list', about: 'List the sites.', example: '--json', run: runList },
  {
    name: 'site show',
    about: 'Show a site, what powgate has learned about its visitors, and the ids of its API keys.',
    positionals: [SITE_KEY],
    example: EXAMPLE_SITE_KEY,
    run: runShow,
  },
  {
    name: 'site update',
    about:
      'Change a site. Settings without a flag stay as they are. Workers take a change over within two seconds.',
    positionals: [SITE_KEY],
    flags: { ...SITE_FLAGS, ...CLEARING_FLAGS },
    example: `${EXAMPLE_SITE_KEY} --base 20 --plan pro --block 203.0.113.0/24`,
    run: runUpdate,
  },
  {
    name: 'site disable',
    about: 'Refuse every request for a site, and all its API keys.',
    positionals: [SITE_KEY],
    example: EXAMPLE_SITE_KEY,
    run: input => runSwitch(input, false),
  },
  {
    name: 'site enable',
    about: 'Let a disabled site work again.',
    positionals: [SITE_KEY],
    example: EXAMPLE_SITE_KEY,
    run: input => runSwitch(input, true),
  },
  {
    name: 'site delete',
    about: 'Delete a site, by its --name too, and its API keys for good. Its site key is never used again.',
    positionals: [SITE_KEY],
    flags: {
      name: { ...SITE_FLAGS.name!, about: 'Name of the site, so that you do not delete another by mistake.' },
    },
    example: `${EXAMPLE_SITE_KEY} --name shop`,
    run: runDelete,
  },
  {
    name: 'site raise',
    about: "Make a site's challenges harder for a limited time, for example during an attack.",
    positionals: [SITE_KEY],
    flags: {
      bits: {
        about: 'Bits to add; each doubles the work. 0 ends a raise now.',
        value: integer('BITS', 0, 8).text,
        isRequired: true,
      },
      for: { about: 'For how long, at most a day.', value: RAISE_DURATION },
    },
    example: `${EXAMPLE_SITE_KEY} --bits 3 --for 2h`,
    run: runRaise,
  },
  {
    name: 'site export',
    about: 'Print sites as a file for apply: those named, or all but that of /demo.',
    positionals: [{ ...SITE_KEY, isOptional: true, repeats: true }],
    flags: {
      whole: {
        about: 'Include hashes of API keys and the times of changes, to move the sites to another store.',
      },
      'from-service': {
        about:
          'Ask the running service, which still has sites and the hashes of API keys after its Redis has lost them.',
      },
    },
    example: '> sites.json',
    run: runExport,
  },
  {
    name: 'site schema',
    about: 'Print the JSON Schema of such a file, for editors and checks.',
    example: '> sites.schema.json',
    run: async input => printDocument(input, (await import('../sites/schema.ts')).EXPORT_FILE_SCHEMA),
  },
]

async function runCreate(input: Input): Promise<void> {
  const wanted = withGiven(SITE_DEFAULTS, givenFields(input))
  const author = authorOfCommand('site create')
  requireOutput()
  const storeName = nameOfStore()
  const { site, apiKey } = await withStore(async store => {
    await refuseLostNames(store, [wanted.name])
    return createSite(store, wanted, author)
  })
  const warnings = siteWarnings(site)
  sayIfOutputIsLost(
    `The site ${site.siteKey} was created in ${storeName}, but nobody knows its API key. Make another: ${PROGRAM} key create ${site.siteKey}${configFlag()}`,
  )
  if (input.has('json')) {
    const keys = { siteKey: site.siteKey, apiKey, apiKeyId: apiKeyId(apiKey) } // these come first
    return printJson({ ...keys, ...site, store: storeName, warnings })
  }
  printLine(
    `The site was created in ${storeName}. Its API key is secret and is not shown again: keep it now.`,
    '',
  )
  printPairs([['API key', apiKey], ...siteLines(site)])
  printWarnings(warnings)
  const origin = site.requireOrigin && site.origins[0] !== undefined ? ` --origin ${site.origins[0]}` : ''
  const config = commandSettings()
  // Before the first start, the service may still get another address than these settings say. Without --url, `try` will find it.
  const isGuess = config.redis === undefined && !hasServedFrom(config.dataDir)
  const target = isGuess ? configFlag() : ` --url ${serviceUrl(config)}`
  printLine(
    '',
    'The site key goes into the page, the API key into the backend. Try both against the running service:',
    '',
    `  POWGATE_API_KEY=${apiKey} ${PROGRAM} try --site-key ${site.siteKey}${target}${origin}`,
    ...(site.limits?.redeem === undefined ? ['', redeemText(site)] : []),
  )
}

function redeemText({ siteKey }: SiteRecord): string {
  const { redeemAddress, redeemApiKey } = CONTRACT_LIMITS
  return `Unless the service's settings differ, its backend may redeem ${redeemAddress} tokens a minute from one address and ${redeemApiKey} with one key. For more: ${PROGRAM} site update ${siteKey} --limit-redeem 5000${configFlag()}`
}

async function runDelete(input: Input): Promise<void> {
  const author = authorOfCommand('site delete')
  const storeName = nameOfStore()
  const { siteKey, name, apiKeys } = await withStore(async store => {
    const site = await findSite(store, input.required(SITE_KEY.name))
    const changes = deletion(site, await store.listApiKeys(), Date.now())
    const apiKeys = changes.length - 1 // the first change is the site's
    if (input.text('name')?.trim() !== site.name)
      throw new OperatorError(
        `--name: expected ${JSON.stringify(site.name)}, the name of the site; it goes with its settings and its ${apiKeys} API key${apiKeys === 1 ? '' : 's'}, the audit log stays`,
      )
    await commit(store, changes, author)
    return { siteKey: site.siteKey, name: site.name, apiKeys }
  })
  const text = `In ${storeName} the site ${name} (${siteKey}) is deleted, with its API keys: ${apiKeys}.`
  sayIfOutputIsLost(text)
  if (input.has('json')) printJson({ siteKey, name, apiKeys, store: storeName })
  else printLine(text)
}

async function runList(input: Input): Promise<void> {
  const sites = inOrderOfCreation(await withStore(store => store.listSites()))
  if (input.has('json')) return printJson(sites)
  if (sites.length === 0) {
    const lost = (await remembered()).sites.length
    if (lost === 0) return printLine(`T${noSitesText(commandSettings(), { isStart: false }).slice(1)}`) // "There are no sites ..."
    const text = `There are no sites in ${nameOfStore()}, but the running service remembers ${lost}`
    return printLine(`${text}: ${restoreSteps()}`)
  }
  const rows = sites.map(site => {
    return [site.siteKey, site.name, stateText(site), site.origins.join(', ') || 'any']
  })
  printTable(['site key', 'name', 'state', 'origins'], rows)
}

async function runShow(input: Input): Promise<void> {
  const siteKey = input.required(SITE_KEY.name)
  const { site, keys, usualRate } = await withStore(async store => {
    const site = await findSite(store, siteKey)
    return { site, keys: await findKeys(store, siteKey), usualRate: await usualRateOf(store, site) }
  })
  if (input.has('json')) {
    const apiKeys = keys.map(({ siteKey: _, ...key }) => key)
    return printJson({ ...site, traffic: { usualRate }, apiKeys })
  }
  const rateText =
    usualRate === undefined
      ? 'not known before an address returns'
      : `${usualRate.toFixed(2)} proofs a second of returning addresses`
  printPairs([...siteLines(site), ['usual rate', rateText]])
  printLine('')
  printKeys(keys)
}

/** Returns how many proofs a second of returning addresses are usual: what was learned, or the site's setting if that is more. */
async function usualRateOf(store: SiteStore, { siteKey, usualRate = 0 }: SiteRecord) {
  const perMinute = await store.readUsualRate(siteKey)
  return perMinute === undefined ? undefined : Math.max(perMinute / 60, usualRate)
}

async function runUpdate(input: Input): Promise<void> {
  const given = givenFields(input)
  if (given.size === 0)
    throw new UsageError(`site update: expected something to change; see ${PROGRAM} site update --help`)
  const change = (before: SiteRecord) => withGiven(before, given)
  await runChange(input, 'site update', change, () => 'The site was changed')
}

async function runSwitch(input: Input, active: boolean): Promise<void> {
  const command = active ? 'site enable' : 'site disable'
  await runChange(input, command, { active }, site => `The site is ${stateText(site)}`)
}

async function runRaise(input: Input): Promise<void> {
  const bits = Number(input.required('bits'))
  const duration = input.text('for')
  if (bits > 0 && duration === undefined)
    throw new UsageError('--for is missing: a raise ends by itself. Example: --bits 3 --for 2h')
  if (bits === 0 && duration !== undefined)
    throw new UsageError('--for has no effect with --bits 0, which ends a raise now')
  const raise = duration === undefined ? undefined : { bits, until: Date.now() + durationMs(duration)! }
  await runChange(input, 'site raise', { raise }, () => `The site is ${bits === 0 ? 'not raised' : 'raised'}`)
}

async function runChange(
  input: Input,
  command: string,
  change: Parameters<typeof updateSite>[2],
  outcome: (site: SiteRecord) => string,
): Promise<void> {
  const siteKey = input.required(SITE_KEY.name)
  const author = authorOfCommand(command)
  const storeName = nameOfStore()
  const site = await withStore(store => updateSite(store, siteKey, change, author))
  const warnings = siteWarnings(site)
  sayIfOutputIsLost(`${outcome(site)} in ${storeName}: ${PROGRAM} site show ${siteKey}${configFlag()}`)
  if (input.has('json')) return printJson({ ...site, store: storeName, warnings })
  printLine(`${outcome(site)} in ${storeName}.`, '')
  printPairs(siteLines(site))
  printWarnings(warnings)
}

function stateText({ active }: SiteRecord): string {
  return active ? 'active' : 'disabled'
}

function printWarnings(warnings: readonly string[]): void {
  for (const warning of warnings) printLine('', `warning: ${warning}`)
}

async function runExport(input: Input): Promise<void> {
  const siteKeys = input.texts(SITE_KEY.name)
  if (input.has('from-service')) {
    if (siteKeys !== undefined) throw new UsageError('--from-service: expected no site keys beside it')
    const { sites, apiKeys, deletedSites } = await recordsOfService()
    return printDocument(input, exportFile(sites, apiKeys, deletedSites)) // as with --whole
  }
  const file = await withStore(async store => {
    const sites =
      siteKeys === undefined
        ? (await store.listSites()).filter(isNotDemo)
        : await Promise.all([...new Set(siteKeys)].map(siteKey => findSite(store, siteKey)))
    return exportFile(sites, input.has('whole') ? await store.listApiKeys() : undefined)
  })
  printDocument(input, file)
}

/** Prints a line for each field, so that version control shows what changed; with --json all is on one line. */
function printDocument(input: Input, document: unknown): void {
  printJson(document, input.has('json') ? undefined : 2)
}
