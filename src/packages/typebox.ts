/** What powgate takes of typebox. The build makes each file of this folder one file with all that it loads, which saves a fifth of the CPU time of a start. */

export * from 'typebox'
export { default } from 'typebox'
