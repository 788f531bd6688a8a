#!/bin/sh
# The native binaries that powgate can load (Linux, glibc, Node.js 20, 22 and 24): SHA-256, bytes, path, and what each says of
# its origin: version, compiler, and the folder it was built in.
#
#   scripts/native-binaries.sh           all that are installed
#   scripts/native-binaries.sh FOLDER    and whether the file of that name there, say of an upstream release, is the same
#
# What was installed when the tests passed is in src/native-binaries.sha256, in the form of sha256sum.
set -eu
upstream=${1:+$(realpath "$1")}
cd "$(dirname "$0")/.."

find node_modules -name '*.node' | grep -E 'linux_(x64|arm64)_(115|127|137)\.node' | sort |
  while read -r file; do
    set -- $(sha256sum "$file")
    echo "$1  $(stat -c %s "$file")  $file"
    grep -aoE 'uWebSockets/[0-9]+|(GCC: [^)]*\)|clang version) [0-9a-z.~-]+|/home/[[:alnum:]/.]*' "$file" |
      sed -E 's|(/home(/[^/]*){6}).*|\1|' | sort -u | sed 's/^/    /'
    other=$upstream/$(basename "$file")
    if [ -n "$upstream" ] && [ -e "$other" ]; then
      cmp -s "$file" "$other" && echo "    the same as $other" || echo "    not the same as $other"
    fi
  done
