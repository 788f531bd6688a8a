export { default as PowGate } from './PowGate.svelte'
