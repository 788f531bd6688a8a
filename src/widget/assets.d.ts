/**
 * Written into each script when it is bundled (build/bundle.ts): file names such as `worker.0123456789.js`, and integrity
 * values `sha256-...`, of the files that were built before it.
 */
declare const ASSET_NAMES: Readonly<
  Record<'simdWasm' | 'scalarWasm' | 'workerJs' | 'pageJs' | 'gpuJs' | 'frameHtml' | 'widgetJs', string>
>
declare const ASSET_PINS: Readonly<Record<'workerJs' | 'pageJs' | 'gpuJs', string>>
