/** What `powgate check` prints, filled in by check.ts, store.ts and machine.ts. */

export interface CheckResults {
  /** What the service would do: names and values. */
  readonly facts: [name: string, value: string][]
  /** Why the service would not start or not work. */
  readonly problems: string[]
  /** Risks, each with what to do. */
  readonly warnings: string[]
  /** Hints. */
  readonly notes: string[]
}
