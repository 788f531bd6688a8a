#!/bin/sh
# Puts upstream's own build of uWebSockets.js in the place of the package that the lock file names, loads it, and runs the
# contract's tests on it. Needs a network that reaches github.com. Repeat after each `npm ci`.
#
#   scripts/use-upstream-server.sh v20.69.0           a tag of uNetworking/uWebSockets.js whose archive's hash is in
#                                                     upstream-servers.sha256; if it is not, the hash is printed
#   scripts/use-upstream-server.sh npm:NAME@VERSION   another package
#   scripts/use-upstream-server.sh WHICH install      without the tests, as the Dockerfile does
set -eu
which=${1:?'expected a tag such as v20.69.0, or npm:NAME@VERSION'}
cd "$(dirname "$0")/.."
case $which in
  npm:*) package=$which ;;
  v[0-9]*)
    package=$(mktemp -d)/$which.tar.gz
    url=https://github.com/uNetworking/uWebSockets.js/archive/refs/tags/$which.tar.gz
    node -e 'fetch(process.argv[1]).then(async r => { if (!r.ok) throw r.status; require("fs").writeFileSync(process.argv[2], Buffer.from(await r.arrayBuffer())) }).catch(e => { console.error(`${process.argv[1]}: ${e.cause ?? e}`); process.exit(1) })' "$url" "$package"
    sum=$(sha256sum "$package" | cut -d' ' -f1)
    if ! grep -qxF "$sum  $which" scripts/upstream-servers.sha256; then
      echo "$which: its archive has sha256 $sum, which scripts/upstream-servers.sha256 does not have for it." >&2
      echo "Compare it with another source, then add the line: $sum  $which" >&2
      exit 1
    fi ;;
  *) echo "expected a tag such as v20.69.0, or npm:NAME@VERSION, got $which" >&2; exit 2 ;;
esac
trap '[ $? = 0 ] || echo "$which does not serve here. Put the locked package back: npm ci" >&2' EXIT
npm install --no-save --no-audit --no-fund --ignore-scripts "uWebSockets.js@$package"
node -e 'import("uWebSockets.js").then(({ App }) => App())'
[ "${2:-}" = install ] || npm run -s build
[ "${2:-}" = install ] || npm test -- test/contract test/http
