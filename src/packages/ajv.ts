/** What powgate takes of ajv. The build bundles all that it loads into one file, so that starts are quicker (docs/architecture.md). */

export { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
