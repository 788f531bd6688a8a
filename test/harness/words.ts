/** The words of some lines of text, for long lists of short values. */
export const words = (...lines: readonly string[]): string[] => lines.flatMap(line => line.split(' '))
