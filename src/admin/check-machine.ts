/** What `powgate check` finds out about the machine: the port, limits of the process, settings of the kernel. */

import { createServer } from 'node:net'
import type { Config } from '../config.ts'
import { migratesConnections, openFilesMax } from '../open-files.ts'
import type { Findings } from './check.ts'

/** Each connection is an open file; a worker also holds its store's and its log's. */
const FILES_MIN = 4096

export async function checkMachine(config: Config, findings: Findings): Promise<void> {
  await checkPort(config, findings)
  const files = openFilesMax('self')
  if (files < FILES_MIN)
    findings.warnings.push(
      `a worker may open ${files} files, connections among them: raise it (ulimit -n, LimitNOFILE)`,
    )
  if (migratesConnections() === false)
    findings.notes.push(
      'net.ipv4.tcp_migrate_req is 0: connections that arrive at the very moment a worker is replaced can be reset; set it to 1',
    )
}

/** A port in use is no problem: the service that is being asked about may be running. */
function checkPort({ host, port }: Config, findings: Findings): Promise<void> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE')
        findings.notes.push(`port ${port} is in use, by powgate or by another program`)
      else findings.problems.push(`HOST, PORT: cannot listen on ${host}:${port}: ${error.message}`)
      resolve()
    })
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })
}
