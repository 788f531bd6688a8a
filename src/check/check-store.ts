/** The part of `powgate check` that tries the store, by calls such as those of visitors and backends, and looks at its sites. */

import { randomBytes } from 'node:crypto'
import { existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { isSecretToBeMade, resolveSecrets } from '../config/secrets.ts'
import { siteMeter } from '../domain/address-tags.ts'
import { isExpired, type SiteRecord } from '../domain/site.ts'
import { compareWithHosts, namesOf, problemsWith } from '../process/host-registry.ts'
import { isFirstStart } from '../sites/prepare-start.ts'
import { siteWarnings } from '../sites/sites.ts'
import { accessWarningOf, hasServedFrom, prepareDataDir, socketPath } from '../store/embedded/data-dir.ts'
import { SITES_JSONL } from '../store/embedded/sites-file.ts'
import { differences } from '../store/hosts.ts'
import { createStore, openSiteStore } from '../store/open.ts'
import type { RequestStore, SiteStore } from '../store/store.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'

export interface Findings {
  readonly facts: [name: string, value: string][]
  /** The service would not start or work. */
  readonly problems: string[]
  /** These are mistakes that visitors or the operator may suffer from. */
  readonly warnings: string[]
  /** These matter only to some services, and the operator decides whether to act. */
  readonly notes: string[]
}

/** A start makes some files, a few KiB in all. Some file systems count neither. */
const [START_BYTES, START_FILES] = [65_536, 8]
/** Longer than the service gives a call, because no visitor waits for this one. */
const DEADLINE_MS = 2000
/** Each trial has a random address, so 32 of them reach most shards of a Cluster. */
const TRIALS = 32
/** The calls to the store that a trial makes, one after the other. */
const CALLS_OF_TRIAL = 5
/** A trial makes fewer requests than this a minute, so its limits refuse none. */
const AMPLE_LIMIT = 30
/** The nonce and the token of a trial are valid for this time. The store keeps what it writes of them for some minutes. */
const VALID_MS = 1000

/** Stands for the site that the start will make. `check` compares it by identity: another empty list deserves a warning, this does not. */
export const NONE_YET: readonly SiteRecord[] = []

/** @returns the store's sites; undefined if they cannot be read */
export async function checkStore(
  config: Config,
  findings: Findings,
): Promise<readonly SiteRecord[] | undefined> {
  try {
    return await (config.redis === undefined ? checkEmbedded : checkRedis)(config, findings)
  } catch (error) {
    findings.problems.push((error as Error).message)
    return undefined
  }
}

async function checkRedis(config: Config, findings: Findings): Promise<readonly SiteRecord[]> {
  const store = createStore(config, { deadlineMs: DEADLINE_MS })
  try {
    findings.facts.push(['store', store.description])
    await store.open()
    const version = await store.version()
    if (version !== undefined) findings.facts.push(['version', version])
    await tryRequests(store.requests, findings)
    const { own, others, livingNamesakes } = await compareWithHosts(store.sites, config)
    findings.facts.push(['other hosts', namesOf(others) || 'none'])
    // A living namesake is probably the running service. Its `shared` values may differ, because a SIGHUP or a restart will change them:
    // that is a note. Its secrets must fit already, because old and new workers serve side by side while a SIGHUP renews them.
    const comparedBySecretsAlone = livingNamesakes.map(host => ({ ...host, shared: own.shared }))
    const problems = problemsWith([...others, ...comparedBySecretsAlone], own)
    findings.problems.push(...problems)
    for (const found of livingNamesakes.flatMap(host => differences(own, host)))
      if (!problems.includes(found))
        findings.notes.push(`${found}, which is this service if one runs here: SIGHUP changes it`)
    const sites = await countSites(store.sites, findings)
    findings.warnings.push(...(await store.advice()), ...(await store.nodeAdvice()))
    return sites
  } finally {
    await store.close()
  }
}

async function checkEmbedded(config: Config, findings: Findings): Promise<readonly SiteRecord[]> {
  const dataDir = resolve(config.dataDir)
  findings.facts.push(['store', `embedded, in ${dataDir}`])
  socketPath(dataDir) // refuses a path that is too long
  const existing = nearestExisting(dataDir)
  prepareDataDir(existing, { makes: false }) // only checks it
  const { uid } = statSync(existing)
  if (existing === dataDir && uid !== 0 && process.getuid?.() === 0)
    findings.warnings.push(
      `POWGATE_DATA_DIR: ${existing} belongs to user ${uid}, who may lack a permission that root has: check again with sudo -u '#${uid}'`,
    )
  const { blocks, bavail, bfree, bsize, files, ffree } = statfsSync(existing)
  const blocksLeft = process.getuid?.() === 0 ? bfree : bavail
  const isFull = (blocks > 0 && blocksLeft * bsize < START_BYTES) || (files > 0 && ffree < START_FILES)
  if (isFull) throw new OperatorError(`POWGATE_DATA_DIR: ${systemErrorText({ code: 'ENOSPC' })}`)
  const freeMiB = Math.floor((bavail * bsize) / 2 ** 20)
  findings.facts.push(['free space', `${freeMiB} MiB`])
  if (freeMiB < config.stateBytesMax / 2 ** 20)
    findings.warnings.push(
      `POWGATE_DATA_DIR: ${freeMiB} MiB are free, POWGATE_STATE_MAX_MB allows ${config.stateBytesMax / 2 ** 20}: where the state finds no room, a stop loses it, and visitors under way verify once more`,
    )
  if (!isSecretToBeMade(config)) resolveSecrets(config) // refuses a damaged secret, and here makes none
  const noneYet = (then: string) => {
    findings.facts.push(['sites', `none yet: ${then}`])
    return NONE_YET
  }
  if (!existsSync(dataDir))
    return noneYet('the start makes the directory, and a site for pages of this machine')
  const accessWarning = accessWarningOf(dataDir)
  if (accessWarning !== undefined) findings.warnings.push(accessWarning)
  const firstStart = 'unless you create one first, the start makes one for pages of this machine'
  if (!existsSync(join(dataDir, SITES_JSONL)) && !hasServedFrom(dataDir)) return noneYet(firstStart)
  const sites = await openSiteStore(config, warning => findings.warnings.push(warning))
  const store = createStore(config, { deadlineMs: DEADLINE_MS })
  try {
    await store.open()
    await tryRequests(store.requests, findings)
    return (await isFirstStart(config, sites)) ? noneYet(firstStart) : await countSites(sites, findings)
  } finally {
    await store.close()
    await sites.close()
  }
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path))
}

async function countSites(store: SiteStore, findings: Findings): Promise<readonly SiteRecord[]> {
  const [sites, keys] = await Promise.all([store.listSites(), store.listApiKeys()])
  const active = sites.filter(site => site.active).length
  const valid = keys.filter(key => key.revokedAt === null && !isExpired(key, Date.now())).length
  findings.facts.push(['sites', `${active} active, ${sites.length - active} disabled`])
  findings.facts.push(['API keys', `${valid} valid, ${keys.length - valid} not`])
  for (const site of sites) findings.warnings.push(...siteWarnings(site))
  return sites
}

async function tryRequests(store: RequestStore, findings: Findings): Promise<void> {
  const startMs = performance.now()
  for (let trial = 0; trial < TRIALS; trial++) await tryOne(store)
  const callMs = (performance.now() - startMs) / (TRIALS * CALLS_OF_TRIAL)
  findings.facts.push([
    'scripts',
    `run: limits, single use of nonces and of tokens hold; ${callMs.toFixed(1)} ms a call`,
  ])
}

async function tryOne(store: RequestStore): Promise<void> {
  const random = randomBytes(16)
  const addressKey = random.toString('base64url')
  const nonce = random.toString('hex')
  const expiresAtMs = Date.now() + VALID_MS
  const siteKey = `check ${nonce}` // This is no site's key. Such a request has the site's tag 0, and its limit 0, which is none.
  // With `counts` false no meter counts the proof, so `free` is not needed, and of these names (AddressTags.firstProofNames; the second
  // is made up) the store only reads whether there is a time.
  const firstProofs = ['e:born', 'e:born:check'] as const
  const metering = { firstProofs, meters: [siteMeter(siteKey)], free: [], counts: false }
  const visit = { addressKey, siteTag: 0, addressLimit: AMPLE_LIMIT, siteLimit: 0, metering }
  const challenge = await new Promise<{ status: string }>(done => store.admitChallenge(visit, done))
  expect(challenge.status, 'admitted', 'a challenge')
  // The epoch of a nonce is that of its address's shard, the epoch of a token that of its site's (store.ts).
  const storeEpoch = store.epochOf(addressKey)!
  const solution = { ...visit, failed: false, spend: { nonce, storeEpoch, expiresAtMs } }
  const spendNonce = () =>
    new Promise<string>(done =>
      store.admitSolution(solution, answer => done('nonce' in answer ? answer.nonce : answer.status)),
    )
  expect(await spendNonce(), 'spent', 'a nonce')
  expect(await spendNonce(), 'used', 'a nonce that was used')
  const redeem = { nonce, storeEpoch: store.epochOf(siteKey)!, expiresAtMs, claim: '' }
  const request = {
    callerKey: addressKey,
    callerLimit: AMPLE_LIMIT,
    apiKey: { id: nonce.slice(0, 8), limit: AMPLE_LIMIT, siteKey },
    redeem,
  }
  const redeemToken = () =>
    new Promise<string>(done =>
      store.redeemToken(request, answer => done('token' in answer ? answer.token : answer.status)),
    )
  expect(await redeemToken(), 'redeemed', 'a token')
  expect(await redeemToken(), 'used', 'a token that was used')
}

function expect(got: string, expected: string, what: string): void {
  if (got !== expected)
    throw new Error(`the store does not work: for ${what} expected ${expected}, got ${got}`)
}
