/** The trees that are compared: this one, and a revision of it in a temporary worktree. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ToolError, tell, UsageError } from '../../test/harness/command-line.ts'
import { leftovers, signalIfThere } from '../../test/harness/processes.ts'
import { THIS_TREE } from '../micro/processes.ts'

export interface Checkout {
  readonly root: string
  stop(): Promise<void>
}

/** The hash of the commit that a revision means. Throws UsageError if it means none. */
export async function commitOf(revision: string): Promise<string> {
  const question = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]
  const inside = await run('git', ['rev-parse', '--git-dir'], THIS_TREE).catch((error: Error) => error)
  if (inside instanceof Error) throw new UsageError(`not a Git tree: ${inside.message}`)
  try {
    return (await run('git', question, THIS_TREE)).trim()
  } catch {
    throw new UsageError(`there is no revision ${JSON.stringify(revision)} here`)
  }
}

/** Puts a commit into a worktree below the system's folder for temporary files. */
export async function checkOut(commit: string): Promise<Checkout> {
  const folder = mkdtempSync(join(tmpdir(), 'powgate-compare-'))
  const root = join(folder, 'tree')
  const stop = async () => {
    if (!leftovers.delete(checkout)) return
    // The link to this tree's packages goes first, so that no removal of folders can follow it.
    rmSync(join(root, 'node_modules'), { recursive: true, force: true })
    // --force twice: Git locks a worktree while it makes it, and an interrupted one may stay locked.
    await run('git', ['worktree', 'remove', '--force', '--force', root], THIS_TREE).catch(() => {})
    rmSync(folder, { recursive: true, force: true })
    // `remove` refuses a worktree that is only half made, which may be on Git's list all the same.
    await run('git', ['worktree', 'prune'], THIS_TREE)
  }
  const checkout = { root, stop }
  leftovers.add(checkout) // so that it is stopped, too, if the bench is interrupted
  try {
    await run('git', ['worktree', 'add', '--detach', root, commit], THIS_TREE)
  } catch (error) {
    await stop()
    throw error
  }
  return checkout
}

/** The sources that `npm run build:hashwx` compiles, which takes long, and what it makes of them for modules to import. */
const HASHWX_SOURCES = ['src/protocol/hashwx/emit.ts', 'src/protocol/hashwx/machine.ts']
const HASHWX_BUILT = ['dist/hashwx.js', 'dist/hashwx-script.js']

/** Gives a worktree its packages, and what its modules import from dist/: those of this tree if they are the same. */
export async function installPackages(root: string): Promise<void> {
  const textOf = (tree: string, path: string) => {
    return existsSync(join(tree, path)) ? readFileSync(join(tree, path), 'utf8') : undefined
  }
  const isSame = (path: string) => textOf(root, path) === textOf(THIS_TREE, path)
  if (isSame('package-lock.json')) {
    symlinkSync(realpathSync(join(THIS_TREE, 'node_modules')), join(root, 'node_modules'))
    mkdirSync(join(root, 'dist'))
    // The copies are newer than the sources, so build:hashwx below has nothing to do.
    if (HASHWX_SOURCES.every(isSame))
      for (const path of HASHWX_BUILT) copyFileSync(join(THIS_TREE, path), join(root, path))
  } else {
    tell('the revision has other packages: npm ci')
    await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], root)
  }
  await run('npm', ['run', '-s', '--if-present', 'build:hashwx'], root)
}

export async function build(root: string): Promise<void> {
  await run('npm', ['run', '-s', 'build'], root)
  if (!existsSync(join(root, 'dist/main.js')))
    throw new Error(`the build of ${root} has left no dist/main.js`)
}

const SHOWN_CHARACTERS_MAX = 400

/** What the command prints. Rejects with ToolError of what it complains about. */
async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  // A group of its own, so that what npm has started ends with it.
  const child = spawn(command, args, {
    cwd,
    env: plainEnvironment(),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  const running = {
    stop: async () => {
      signalIfThere(-child.pid!, 'SIGTERM')
      await closed
    },
  }
  leftovers.add(running)
  try {
    const [[code], stdout, stderr] = await Promise.all([closed, text(child.stdout), text(child.stderr)])
    if (code === 0) return stdout
    const complaint = stderr.trim() || stdout.trim() || 'failed without a word'
    const line = complaint.replaceAll(/\s*\n\s*/g, ' | ').slice(0, SHOWN_CHARACTERS_MAX)
    throw new ToolError(`${[command, ...args].join(' ')}: ${line}`)
  } finally {
    leftovers.delete(running)
  }
}

/** Within a hook or a rebase, Git's own variables would lead it to another tree than the folder says. */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_')))
}
