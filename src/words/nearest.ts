/** "Did you mean": the name closest to a mistyped command, flag, setting or field. */

/** A shorter common beginning may be chance. */
const BEGINNING_CHARACTERS_MIN = 4

/** Returns the name with the fewest edits, at most one or a third of the typed letters; else one where either begins the other. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  const editsMax = Math.max(1, Math.floor(typed.length / 3))
  const [best] = names
    .filter(name => Math.abs(name.length - typed.length) <= editsMax) // or names of 8 KB would take 10 ms
    .map(name => ({ name, edits: editsBetween(typed, name) }))
    .filter(({ edits }) => edits <= editsMax)
    .sort((one, other) => one.edits - other.edits)
  return best?.name ?? names.find(name => beginsWith(name, typed) || beginsWith(typed, name))
}

export function didYouMean(typed: string, names: readonly string[]): string {
  const name = nearest(typed, names)
  return name === undefined ? '' : ` (did you mean ${name}?)`
}

function beginsWith(text: string, beginning: string): boolean {
  return beginning.length >= BEGINNING_CHARACTERS_MIN && text.startsWith(beginning)
}

/** Optimal string alignment distance: Levenshtein's, with a swap of neighbours as one edit. */
function editsBetween(from: string, to: string): number {
  // table[row][column] is the distance of the first `row` letters of `from` and the first `column` letters of `to`.
  const table = [Array.from({ length: to.length + 1 }, (_, column) => column)]
  for (let row = 1; row <= from.length; row++) {
    const above = table[row - 1]!
    const edits = [row]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1]
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      edits[column] = Math.min(
        above[column - 1]! + (isSame ? 0 : 1),
        above[column]! + 1,
        edits[column - 1]! + 1,
        isSwap ? table[row - 2]![column - 2]! + 1 : Infinity,
      )
    }
    table.push(edits)
  }
  return table[from.length]![to.length]!
}
