/** A vendor's options: attributes `data-*` of the container, and what `render()` got. */

export type Values = Readonly<Record<string, unknown>>

/** Keys in lower case without dashes: vendors write `expired-callback`, and the browser `expiredCallback` in `dataset`. */
export type Options = Readonly<Record<string, unknown>>

/** Why an option has no effect, except for the values of MAPPED. docs/migrate/packages.md names the same options. */
const UNMAPPED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    rqdata: 'the token carries no data of the vendor',
    size: 'the widget has one size, and "invisible"',
    appearance: 'the widget is always shown, or "interaction-only"',
    badge: 'there is no badge',
    type: 'there are no images and no sounds',
    tabindex: 'the widget follows the order of the page',
    retry: 'the widget repeats what failed by itself',
    retryinterval: 'the service says when to try again',
    refreshtimeout: 'no visitor is asked anything',
    timeoutcallback: 'no visitor is asked anything',
    beforeinteractivecallback: 'no visitor is asked anything',
    afterinteractivecallback: 'no visitor is asked anything',
    opencallback: 'no visitor is asked anything',
    closecallback: 'no visitor is asked anything',
    chalexpiredcallback: 'no visitor is asked anything',
    challengecontainer: 'no visitor is asked anything',
    unsupportedcallback: 'every browser is supported; other failures call error-callback',
    feedbackenabled: 'nothing is reported',
  }),
)

/** Values that have an effect, of options that otherwise have none. */
const MAPPED: Readonly<Record<string, RegExp>> = {
  size: /^(normal|invisible)$/,
  appearance: /^(always|interaction-only)$/,
}

export function optionsOf(container: Element, values?: Values | null): Options {
  return { ...normalized((container as HTMLElement).dataset), ...normalized(values) }
}

/** Wrappers pass null and undefined for what the page left out. */
export function normalized(values?: Values | null): Options {
  return Object.fromEntries(
    Object.entries(values ?? {})
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([key, value]) => [key.replaceAll('-', '').toLowerCase(), value]),
  )
}

export function warnOfUnmapped(values?: Values | null): void {
  for (const [key, value] of Object.entries(normalized(values))) {
    const why = UNMAPPED.get(key)
    if (why !== undefined && !MAPPED[key]?.test(String(value))) warnOnce(`"${key}" has no effect: ${why}`)
  }
}

const warned = new Set<string>()

export function warnOnce(message: string): void {
  if (warned.has(message)) return
  warned.add(message)
  console.warn(`powgate: ${message}`)
}
