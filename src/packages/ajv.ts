/** What powgate takes of ajv. The build makes each file of this folder one file with all that it loads, which saves a fifth of the CPU time of a start. */

export { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
