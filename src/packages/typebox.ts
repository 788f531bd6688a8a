/** What powgate takes of typebox. The build bundles all that it loads into one file, so that starts are quicker (docs/architecture.md). */

export * from 'typebox'
export { default } from 'typebox'
