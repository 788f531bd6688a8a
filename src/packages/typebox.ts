/** What powgate takes of typebox. The build makes it one file with all that it loads: docs/architecture.md says why. */

export * from 'typebox'
export { default } from 'typebox'
