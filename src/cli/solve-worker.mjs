// Starts solve-worker.ts when powgate runs from its source: on Node.js 20 a thread does not get the loader that
// `--import tsx` gives to the main thread. The build needs and has no such file.
import { register } from 'tsx/esm/api'

register()
await import('./solve-worker.ts')
