/** The container on Node.js 24 and Debian 13. */

process.env.TEST_NODE = '24'
await import('./container.test.ts')
