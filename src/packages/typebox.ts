/** What powgate takes of typebox. The build bundles all that it loads into one file. With all four files of this folder, a start takes a fifth less CPU time. */

export * from 'typebox'
export { default } from 'typebox'
