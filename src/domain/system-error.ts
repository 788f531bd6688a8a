/** Why a file or connection failed: Node.js' words have codes, calls and paths that the line tells already. */

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'this user has no permission',
  EPERM: 'this user has no permission',
  EISDIR: 'it is a directory',
  ENOTDIR: 'part of its path is no directory',
  EEXIST: 'there is a file of this name',
  ELOOP: 'its links lead in a circle',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many files are open (ulimit -n)',
  Z_DATA_ERROR: 'it is not a gzip file, or damaged',
  Z_BUF_ERROR: 'it is a gzip file without its end',
  EADDRINUSE: 'the port is taken',
  EADDRNOTAVAIL: 'this machine does not have the address',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'the connection was closed',
  EHOSTUNREACH: 'no route leads there',
  ENETUNREACH: 'no route leads there',
  ENOTFOUND: 'there is no host of this name',
  EAI_AGAIN: 'the name server does not answer',
  ETIMEDOUT: 'no answer in time',
}

export function systemErrorText(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return WORDS[code] ?? message
}
