export default {
  mutate: ['src/domain/*.ts', 'src/endpoints/*.ts'],
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: {
    testFiles: ['test/domain/*.test.ts'],
    nodeArgs: ['--import', 'tsx', '--test-reporter=tap',],
  },
  ignorePatterns: ['client', 'docs', 'scripts', 'bench', 'data', 'screenshots', 'test/release', 'test/client'],
  concurrency: 2,
  coverageAnalysis: 'perTest',
  reporters: ['clear-text', 'progress-append-only'],
  tempDirName: '.mutants',
  allowEmpty: false,
  // Stryker would rewrite paths in it by an interface that TypeScript 7 no longer has.
  tsconfigFile: 'none',
}
