/** How many threads to solve with. */

const THREADS_MAX = 8
/** GiB. */
const SMALL_DEVICE_MEMORY = 2
const LOW_BATTERY = 0.2
/** The battery's state may arrive late: nothing waits longer than this for it. */
const BATTERY_WAIT_MS = 50

interface Hints {
  readonly deviceMemory?: number
  readonly connection?: { readonly saveData?: boolean }
  getBattery?(): Promise<{ readonly charging: boolean; readonly level: number }>
}

/** All cores of a small machine, all but one of a large one, at most 8; half of that if power or memory is short. */
export async function threadCount(): Promise<number> {
  const cores = navigator.hardwareConcurrency || 2
  const threads = Math.min(THREADS_MAX, cores > 4 ? cores - 1 : cores)
  return (await isSparing()) ? Math.ceil(threads / 2) : threads
}

async function isSparing(): Promise<boolean> {
  const hints = navigator as Navigator & Hints
  if (hints.connection?.saveData || (hints.deviceMemory ?? 8) <= SMALL_DEVICE_MEMORY) return true
  try {
    const late = new Promise<undefined>(resolve => setTimeout(resolve, BATTERY_WAIT_MS))
    const battery = await Promise.race([hints.getBattery?.(), late])
    return battery !== undefined && !battery.charging && battery.level <= LOW_BATTERY
  } catch {
    return false
  }
}
