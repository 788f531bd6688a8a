/** What the primary does before it forks: reach the store once, and on a new embedded store make a demo site. */

import type { Config } from '../config.ts'
import type { Logger } from '../log.ts'
import { resolveSecrets } from '../secrets.ts'
import { discardStaleState, prepareDataDir } from '../store/embedded/environment.ts'
import { createStore } from '../store/open.ts'
import { RedisStore } from '../store/redis/store.ts'
import { createSite } from './sites.ts'

/** Time for calls before any request is served, where patience costs nothing. */
const PATIENT_MS = 2000

/** Returns the store's description. Throws StoreSetupError. */
export async function prepareFirstStart(config: Config, log: Logger): Promise<string> {
  if (config.redis === undefined) {
    prepareDataDir(config.dataDir)
    discardStaleState(config.dataDir)
  }
  resolveSecrets(config)
  const store = createStore(config, { sweeps: false, deadlineMs: PATIENT_MS })
  try {
    await store.open()
    if (store instanceof RedisStore) {
      const warning = await store.evictionWarning()
      if (warning !== undefined) log.warn(warning)
    }
    const sites = await store.listSites()
    if (sites.length === 0 && config.redis === undefined) {
      const { site, apiKey } = await createSite(store, { name: 'demo' })
      printDemo(site.siteKey, apiKey)
    } else if (sites.length === 0) {
      process.stdout.write(
        'There are no sites yet. Create one: npm run -s powgate -- site create --name NAME\n',
      )
    }
    return store.description
  } finally {
    await store.close()
  }
}

/** The only time that the API key is shown. */
function printDemo(siteKey: string, apiKey: string): void {
  process.stdout.write(`
First start: a demo site was created, open to every origin.

  site key  ${siteKey}
  API key   ${apiKey}   (secret; shown only now)

Try the whole flow from another terminal:

  npm run -s powgate -- try --site-key ${siteKey} --api-key ${apiKey}

`)
}
