/** Options that choose among names. */

import type { Option } from '../../test/harness/command-line.ts'

/** One of the names; the first by default. */
export function choice<Name extends string>(names: readonly [Name, ...Name[]], about: string): Option<Name> {
  return {
    about: `${about}: ${names.join(', ')}; default ${names[0]}.`,
    value: oneOf(names),
    read: (input, flag) => names.find(name => name === input.text(flag)) ?? names[0],
  }
}

function oneOf(names: readonly string[]) {
  const accepts = (given: string) => names.includes(given)
  return { placeholder: 'NAME', expects: `one of ${names.join(', ')}`, accepts }
}

/** Some of the names, in their order; all of them by default. */
export function choices<Name extends string>(names: readonly Name[], about: string): Option<readonly Name[]> {
  return {
    about: `${about}: ${names.join(', ')}; default all.`,
    value: { ...oneOf(names), repeats: true },
    read: (input, flag) => {
      const given = input.texts(flag)
      return names.filter(name => given === undefined || given.includes(name))
    },
  }
}
