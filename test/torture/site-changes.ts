/** Changes sites all the time, while another load runs. */

import { createSite, updateSite } from '../../src/sites/sites.ts'
import { Client } from '../harness/client.ts'
import type { TestService } from '../harness/service.ts'
import { EASY } from './redemptions.ts'
import type { Run } from './run.ts'

const CHANGE_MS = 2000
/** After that many, existing sites are changed again: the numbers of each site stay in memory, some KiB in every process. */
const SITES_MAX = 20
/** A change must be visible within two seconds. */
const SEEN_MS = 2000

/** Creates, changes and disables a site at intervals, and checks that workers see each change; later with the same sites. */
export class SiteChanges {
  count = 0
  #rounds = 0
  #visitors = 0
  readonly #siteKeys: string[] = []
  readonly #run: Run
  readonly #service: TestService
  readonly #done: Promise<void>
  #isOver = false

  constructor(run: Run, service: TestService) {
    this.#run = run
    this.#service = service
    this.#done = this.#change().catch(error => run.check(false, `site changes: ${(error as Error).message}`))
  }

  /** May be called more than once. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #change(): Promise<void> {
    const store = await this.#service.openSites()
    const client = new Client(this.#service.url)
    try {
      while (!this.#isOver) {
        const siteKey = await this.#nextSite(store)
        await this.#until(client, siteKey, '200', 'a site that is active')
        await updateSite(store, siteKey, { name: `changed ${this.#rounds}`, requireOrigin: true })
        await this.#until(client, siteKey, '403 origin-not-allowed', 'a site that wants an origin')
        await updateSite(store, siteKey, { active: false, requireOrigin: false })
        await this.#until(client, siteKey, '403 site-inactive', 'a disabled site')
        this.#rounds++
        this.count += 3
        await sleep(CHANGE_MS)
      }
    } finally {
      await store.close()
    }
  }

  async #nextSite(store: Awaited<ReturnType<TestService['openSites']>>): Promise<string> {
    if (this.#siteKeys.length < SITES_MAX) {
      const name = `soak ${this.#rounds}`
      const { site } = await createSite(store, { name, difficulty: EASY })
      this.#siteKeys.push(site.siteKey)
      return site.siteKey
    }
    const siteKey = this.#siteKeys[this.#rounds % SITES_MAX]!
    await updateSite(store, siteKey, { active: true })
    return siteKey
  }

  async #until(client: Client, siteKey: string, wanted: string, words: string): Promise<void> {
    const startedAtMs = performance.now()
    for (;;) {
      // A new address each time, so that no limit refuses.
      const visitor = `10.200.${(this.#visitors >> 8) & 0xff}.${this.#visitors++ & 0xff}`
      const answer = await client.challenge(siteKey, { headers: { 'X-Forwarded-For': visitor } })
      const seen = answer.status === 200 ? '200' : `${answer.status} ${answer.json.code}`
      if (seen === wanted) break
      const waitedMs = performance.now() - startedAtMs
      if (waitedMs > 5 * SEEN_MS) {
        this.#run.check(false, `${words} is not seen: ${seen}`)
        return
      }
      await sleep(50)
    }
    const tookMs = performance.now() - startedAtMs
    this.#run.check(tookMs <= SEEN_MS || !this.#run.isFull, `${words} was seen after ${tookMs.toFixed(0)} ms`)
  }
}

const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
