/** What `powgate check` prints, filled in by check.ts, store.ts and machine.ts. */

export interface Findings {
  /** What the service would do, by name. */
  readonly facts: [name: string, value: string][]
  /** Why it would not start, or not work. */
  readonly problems: string[]
  /** What will hurt one day, and what to do. */
  readonly warnings: string[]
  /** What is good to know. */
  readonly notes: string[]
}
