/**
 * Classes of visitors' devices, and how long they take. The speeds are estimates of November 2026 for SHA-256 in WebAssembly
 * on all threads, from the public tables of Cap (docs/guide/benchmark.md), pow-buster (README) and mCaptcha's survey. No phone
 * was measured with this solver. `npm run bench:effect` and `powgate policy replay` read them here.
 */

export interface DeviceClass {
  readonly name: string
  /** Of all visitors, 0 to 1. */
  readonly share: number
  /** Million hashes a second. */
  readonly medianMhs: number
  /** Standard deviation of the speed's natural logarithm. */
  readonly sigma: number
}

export const DEVICE_CLASSES: readonly DeviceClass[] = [
  { name: 'low phone', share: 0.12, medianMhs: 2.5, sigma: 0.5 },
  { name: 'mid phone', share: 0.35, medianMhs: 10, sigma: 0.4 },
  { name: 'high phone', share: 0.18, medianMhs: 18, sigma: 0.4 },
  { name: 'laptop', share: 0.25, medianMhs: 40, sigma: 0.5 },
  { name: 'desktop', share: 0.08, medianMhs: 90, sigma: 0.4 },
  { name: 'no WebAssembly', share: 0.02, medianMhs: 0.8, sigma: 0.6 },
]

/** Mean seconds of so many hashes: a log-normal speed's inverse has the mean exp(sigma^2 / 2) / median. */
export function meanSeconds({ medianMhs, sigma }: DeviceClass, hashes: number): number {
  return (hashes * Math.exp((sigma * sigma) / 2)) / (medianMhs * 1e6)
}
