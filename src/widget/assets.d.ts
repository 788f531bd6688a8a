/**
 * Written into each script by build/bundle.ts: names such as `worker.0123456789.js`, and integrity values `sha256-...`, of the
 * files built before it.
 */
declare const ASSET_NAMES: Readonly<
  Record<
    | 'simdWasm'
    | 'scalarWasm'
    | 'workerJs'
    | 'pageJs'
    | 'frameHtml'
    | 'hashwxWasm'
    | 'hashwxScriptJs'
    | 'hashwxPageJs'
    | 'gpuJs'
    | 'widgetJs',
    string
  >
>
declare const ASSET_PINS: Readonly<Record<'workerJs' | 'pageJs' | 'hashwxPageJs' | 'gpuJs', string>>

/** HashWX in plain JavaScript, by `npm run build:hashwx`. */
declare module '#hashwx-script' {
  const exports: import('../protocol/hashwx-machine.ts').MachineExports
  export = exports
}
