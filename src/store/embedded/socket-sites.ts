/** Operations on sites over the store process' socket: a question is JSON of an operation's name and arguments. */

import { OperatorError } from '../../words/errors.ts'
import type { Ask } from '../client/connection.ts'
import { rethrowChangeError } from '../client/trouble.ts'
import type { SiteStore } from '../store.ts'

type SiteOperation = keyof SiteStore

/** All operations of a SiteStore, by its type, and the only ones that a peer can call. */
const OPERATIONS: Readonly<Record<SiteOperation, true>> = {
  readSite: true,
  readApiKey: true,
  listSites: true,
  listApiKeys: true,
  commit: true,
  readAudit: true,
  dropAudit: true,
  forget: true,
  noteUses: true,
  readUses: true,
  noteHost: true,
  livingHosts: true,
  readUsualRate: true,
  changesSince: true,
}

/** What an operation answered; without a value it was undefined. */
interface SiteAnswer {
  readonly value?: unknown
  readonly error?: string
  readonly isSetupError?: boolean // for an OperatorError
}

/** Writes of workers: these wait for the disk, and so would batches that follow over the connection. Who else writes sends no batches. */
const WRITES_OF_WORKERS = new Set(['dropAudit', 'noteUses'])

/** @param askAside asks by a connection that no batch uses; a process that sends no batches has one for all */
export function socketSites(ask: Ask, askAside = ask): SiteStore {
  const operationOf =
    (name: string) =>
    async (...args: unknown[]) => {
      const asked = (WRITES_OF_WORKERS.has(name) ? askAside : ask)('sites', toJson([name, ...args]))
      const reply = (await (name === 'commit' ? asked.catch(rethrowChangeError) : asked)) as string
      const { value, error, isSetupError } = fromJson(reply) as SiteAnswer
      if (error !== undefined) throw isSetupError ? new OperatorError(error) : new Error(error)
      return value
    }
  const operations = Object.keys(OPERATIONS).map(name => [name, operationOf(name)] as const)
  return Object.fromEntries(operations) as unknown as SiteStore
}

/** The store process' answer to a question. */
export async function answerOf(sites: SiteStore, question: string): Promise<string> {
  try {
    const [name, ...args] = fromJson(question) as [SiteOperation, ...unknown[]]
    if (!Object.hasOwn(OPERATIONS, name)) throw new Error(`no operation ${name}`)
    return toJson({ value: await (sites[name] as (...args: unknown[]) => Promise<unknown>)(...args) })
  } catch (error) {
    return toJson({ error: (error as Error).message, isSetupError: error instanceof OperatorError })
  }
}

/** A Map becomes an object with its entries. An argument that is undefined becomes null, so operations must treat both alike. */
function toJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => (part instanceof Map ? { $map: [...part] } : part))
}

function fromJson(text: string): unknown {
  return JSON.parse(text, (_, part) => (part?.$map === undefined ? part : new Map(part.$map)))
}
