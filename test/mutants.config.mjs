/**
 * `npm run test:mutants`: Stryker changes src/domain/ in two thousand small ways, and tells which change no test notices.
 * `MUTANTS=engine` before it is the engine of the embedded store, `MUTANTS=endpoints` src/endpoints/ under the contract, on a service
 * in the test's process. `-- --mutate src/domain/token.ts` is one file, `token.ts:80-120` some lines of it.
 */

const PARTS = {
  domain: {
    mutate: ['src/domain/*.ts', '!src/domain/{address-log,limits,outcome,endpoint,test-keys}.ts'],
    testFiles: [
      'test/domain/!(price|hashwx)*.test.js',
      'test/{process/backends,metrics/stats,sites/fields,sites/sites-file}.test.js',
      'test/domain/{price,hashwx}.test.js', // take seconds
    ],
  },
  engine: {
    mutate: [
      'src/store/embedded/{engine,state,snapshot,sites-file}.ts',
      'src/domain/{address-log,limits}.ts',
    ],
    testFiles: ['test/domain/limits.test.js', 'test/store/embedded.test.js'],
    // They wait for other processes.
    skipped: 'second service says|does not answer is told',
  },
  endpoints: {
    mutate: ['src/endpoints/*.ts', 'src/domain/{outcome,endpoint,test-keys}.ts'],
    testFiles: ['browsers', 'backends', 'rest'].map(name => `test/contract/mutants/${name}.js`),
  },
}

const { mutate, testFiles, skipped = '<no test>' } = PARTS[process.env.MUTANTS ?? 'domain']

export default {
  mutate,
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: {
    testFiles,
    nodeArgs: [
      '--test-force-exit',
      '--test-reporter=tap',
      `--test-name-pattern=/^(?!<root>|.*(${skipped}))/`,
    ],
  },
  // JavaScript beside the sources, once for all mutants: tsx would look at each file again for each.
  buildCommand: 'npm run -s build:mutants',
  // Stryker would rewrite the paths in it through an interface that TypeScript 7 no longer has.
  tsconfigFile: 'none',
  disableTypeChecks: true,
  concurrency: 1,
  // A busy machine is slow; an endless loop is endless.
  timeoutMS: 10_000,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { logTests: false, allowColor: false },
  tempDirName: '.mutants',
  ignorePatterns: ['/bench', '/client', 'data', 'screenshots', '/scripts', 'test/client', 'test/release'],
}
