/** `powgate explain`: finds a visitor's lines in logs (explain/search.ts) and prints them with what their reasons mean. */

import { formatAddress, formatNetwork, parseAddress } from '../addresses/address.ts'
import { nonceTerms } from '../domain/nonce.ts'
import type { Reason } from '../domain/outcome.ts'
import type { JudgementReason } from '../domain/score.ts'
import { apiKeyId } from '../domain/site.ts'
import { statedNonce } from '../domain/token.ts'
import {
  type LogRecord,
  type Query,
  type SearchResult,
  STDIN,
  searchLogs,
  VISITS_SHOWN,
} from '../explain/search.ts'
import { isNonceText } from '../protocol/proof.ts'
import { OperatorError, UsageError } from '../words/errors.ts'
import { JUDGEMENT_WORDS, limitWords } from '../words/reasons.ts'
import { REFUSAL_WORDS } from '../words/refusals.ts'
import { type CommandEntry, fileValue, type Input, type Positional } from './command.ts'
import { printJson, printLine } from './output.ts'

const VISITOR: Positional = {
  name: 'VISITOR',
  expects: 'a request id (the X-Request-Id of an answer), a token in quotes, a nonce, or an IP address',
  accepts: text => queryOf(text) !== undefined,
  isSecret: true, // because it may be a token, or an API key by mistake
}

export const EXPLAIN_COMMAND: CommandEntry = {
  name: 'explain',
  about: 'Explain from the log why a visitor got their score, or was refused.',
  positionals: [VISITOR],
  flags: {
    log: {
      about: 'A log of the service, also .gz. Default: standard input, as with "-".',
      value: { ...fileValue('the path of a file, or - for standard input'), repeats: true },
    },
  },
  example: '5f0c6b1e9a3d7721-4k --log /var/log/powgate.log',
  run: runExplain,
}

const REQUEST_ID = /^[\w.:=+/@-]{1,128}$/

function queryOf(text: string): Query | undefined {
  const address = parseAddress(text.trim())
  if (address !== undefined)
    return { text: formatAddress(address), kind: 'address', network: formatNetwork(address) }
  const nonce = statedNonce(text.trim().replace(/%7C/gi, '|')) // form bodies and URLs encode a token's delimiters
  if (nonce !== undefined) return { text: nonce, kind: 'nonce' }
  // A nonce without its token looks like some proxies' request ids, so it is searched for as one.
  if (!REQUEST_ID.test(text.trim()) || apiKeyId(text.trim()) !== undefined) return undefined
  return { text: text.trim(), kind: 'id' }
}

async function runExplain(input: Input): Promise<void> {
  const query = queryOf(input.required(VISITOR.name))!
  const paths = input.texts('log') ?? [STDIN]
  const stdinCount = paths.filter(path => path === STDIN).length
  if (stdinCount > 1) throw new UsageError('--log: - is given twice; standard input can be read once')
  if (stdinCount === 1 && process.stdin.isTTY)
    throw new UsageError(
      '--log: expected the path of a file, or the log on standard input, which is a terminal',
    )
  const findings = await searchLogs(paths, query)
  if (findings.records.length === 0) throw new OperatorError(notFound(findings, query))
  if (input.has('json')) printStoryJson(findings)
  else printStory(findings, query)
}

const WHY_SKIPPED = 'are no JSON lines of powgate with a time'

function notFound({ skipped, read }: SearchResult, { text, network }: Query): string {
  const unread =
    skipped === 0
      ? ''
      : ` (${skipped} lines mention it but ${WHY_SKIPPED}: a log for a terminal needs POWGATE_LOG_FORMAT=json)`
  return (
    `the log does not mention ${network === undefined ? 'this visitor' : `${text} or its network ${network}`}${unread}: with LOG_LEVEL info or lower it holds ` +
    `failures and refusals up to a bound per minute and worker, and successes of the share POWGATE_LOG_SUCCESSES of visitors. ${extentText(read)}`
  )
}

function extentText({ fromMs, toMs, hosts }: SearchResult['read']): string {
  if (fromMs === undefined) return 'Nothing of powgate was read'
  const where = hosts.size === 0 ? 'hosts that it does not name' : [...hosts].join(', ')
  return `Read: ${momentText(fromMs)} to ${momentText(toMs!)}, of ${where}; other hosts have logs of their own (--log for each)`
}

function printStoryJson({ records, read, ...findings }: SearchResult): void {
  const steps = records.map(record => ({ ...stepOf(record), record }))
  printJson({ ...findings, read: { ...read, hosts: [...read.hosts] }, steps })
}

function printStory(findings: SearchResult, { text, network }: Query): void {
  const { records, skipped, isCut, isOfNetwork, read } = findings
  if (isOfNetwork)
    printLine(`The log names networks: what follows is of ${network}, so perhaps of others than ${text}.`, '')
  // A visit's lines share a nonce. A request that was refused without one is shown under its site.
  const groupOf = ({ nonce, site }: SearchResult['records'][number]) => nonce ?? site
  for (const group of new Set(records.map(groupOf))) {
    const own = records.filter(record => groupOf(record) === group)
    const { nonce } = own[0]!
    const site = own.find(({ site }) => site !== undefined)?.site ?? 'no known site'
    printLine(typeof nonce === 'string' ? `Visitor of ${site}, nonce ${nonce}` : `Requests to ${site}`, '')
    const missing = typeof nonce === 'string' ? missingChallenge(nonce, own) : undefined
    if (missing !== undefined) printLine(missing, '')
    for (const { time, title, lines } of own.map(stepOf))
      printLine(`${time}  ${title}`, ...lines.map(line => `    ${line}`), '')
  }
  if (isCut) printLine(`More lines match; only the last ${VISITS_SHOWN} visits are shown.`)
  if (skipped > 0) printLine(`${skipped} lines mention it but ${WHY_SKIPPED}.`)
  printLine(extentText(read))
}

/** These fields describe the process, or are shown elsewhere. */
const NOT_SHOWN = 'event level time name hostname pid msg site nonce reasons'.split(' ')

/** Fields may be missing or have another form: another version may have written the log. */
export function stepOf(record: LogRecord) {
  const fields = Object.entries(record).filter(([name]) => !NOT_SHOWN.includes(name))
  const lines = [...wordsOf(record), fields.map(([name, value]) => `${name} ${valueText(value)}`).join(', ')]
  const title = String(record.event ?? record.msg)
  return { time: momentText(record.time), title, lines: lines.filter(line => line !== '') }
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  return `(${Object.entries(value)
    .map(([name, part]) => `${name} ${valueText(part)}`)
    .join(', ')})`
}

const UNKNOWN = 'Unknown to this version.'

function wordsOf({ event, reason, reasons, endpoint, policy, site }: LogRecord): string[] {
  if (event === 'fault') return [REFUSAL_WORDS.internal]
  if (event !== 'refused')
    return (Array.isArray(reasons) ? reasons : []).map(name => {
      return `${name}: ${JUDGEMENT_WORDS[name as JudgementReason] ?? UNKNOWN}`
    })
  return [REFUSAL_WORDS[reason as Reason] ?? UNKNOWN, limitWords(endpoint, policy, site)]
}

/** With these reasons, the nonce may be made up. */
const FORGED = ['nonce-forged', 'token-forged', 'token-malformed']

/** Describes a challenge that the log lacks by its nonce, which states the challenge's terms. */
function missingChallenge(nonce: string, records: readonly LogRecord[]): string | undefined {
  if (!isNonceText(nonce) || records.some(({ event }) => event === 'challenge-issued')) return undefined
  if (records.every(({ reason }) => FORGED.includes(String(reason)))) return undefined
  const { issuedAtMs, difficulty, puzzle } = nonceTerms(nonce)
  return `The challenge is not in this log (successes are sampled, and another host may have issued it); by its nonce it was issued ${momentText(issuedAtMs)}, difficulty ${difficulty}, puzzle ${puzzle}.`
}

/** UTC, to the millisecond. */
function momentText(unixMs: unknown): string {
  const date = new Date(Number(unixMs))
  return Number.isNaN(date.getTime()) ? 'at an unknown time' : date.toISOString().replace('T', ' ')
}
