/**
 * Written into each script when it is bundled (build/bundle.ts), of the files that were built before it: what they are
 * called, such as `worker.0123456789.js`, and their integrity, `sha256-...`.
 */
declare const ASSET_NAMES: Readonly<
  Record<'simdWasm' | 'scalarWasm' | 'workerJs' | 'pageJs' | 'frameHtml', string>
>
declare const ASSET_PINS: Readonly<Record<'workerJs' | 'pageJs', string>>
