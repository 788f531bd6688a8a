/** What powgate takes of ajv. The build makes it one file with all that it loads: docs/architecture.md says why. */

export { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
