/**
 * Written into each script by build/bundle.ts: names such as `worker.0123456789.js`, and integrity values `sha256-...`, of the
 * files built before it.
 */
declare const ASSET_NAMES: Readonly<
  Record<'simdWasm' | 'scalarWasm' | 'workerJs' | 'pageJs' | 'gpuJs' | 'frameHtml' | 'widgetJs', string>
>
declare const ASSET_PINS: Readonly<Record<'workerJs' | 'pageJs' | 'gpuJs', string>>
