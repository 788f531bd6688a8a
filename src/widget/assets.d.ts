/**
 * Written into each script when it is bundled (build/bundle.ts): by name, what the files are called that were built
 * before it, such as `{ 'worker.js': 'worker.0123456789.js' }`. Each script is given those alone.
 */
declare const ASSET_NAMES: Readonly<
  Record<'simd.wasm' | 'scalar.wasm' | 'worker.js' | 'page.js' | 'frame.js' | 'frame.html', string>
>
