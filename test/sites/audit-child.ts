/** A process of apply.test.ts: when it is told to, changes a site's name many times, while other processes do the same. */

import { once } from 'node:events'
import { loadConfig } from '../../src/config/config.ts'
import { AdminError, updateSite } from '../../src/sites/sites.ts'
import { openSiteStore } from '../../src/store/open.ts'

const [siteKey, label, count] = process.argv.slice(2) as [string, string, string]
const store = await openSiteStore(loadConfig(process.env))
try {
  process.send!('ready')
  await once(process, 'message')
  let done = 0
  while (done < Number(count)) {
    try {
      await updateSite(store, siteKey, { name: `${label} ${done}` }, { who: label, how: 'test' })
      done++
    } catch (error) {
      if (!(error instanceof AdminError)) throw error
    }
    // A look at what others wrote, and a chance for them.
    await new Promise(resolve => setTimeout(resolve, Math.random() * 4))
  }
} finally {
  await store.close()
  process.disconnect()
}
