#!/bin/sh
# What a release does, step by step; .github/workflows/release.yml calls each step on a tag. The first four run anywhere.
#
#   scripts/release.sh check v0.1.0    the tag, package.json and CHANGELOG.md name one version, and no placeholder is left
#   scripts/release.sh notes v0.1.0    prints the changes of this version
#   scripts/release.sh pack DIR        into a new directory: packages of service and client, WordPress plugin, bill of materials, hashes
#   scripts/release.sh sbom            prints the bill of materials: all packages that are shipped
#   scripts/release.sh publish DIR     sends both packages to the registry, with provenance; only in the workflow
#   scripts/release.sh image v0.1.0 REPOSITORY    builds, pushes and signs the image; only in the workflow
set -eu
cd "$(dirname "$0")/.."

version_of() { node -p "require('./$1').version"; }

check() {
  version=${1#v}
  problems=
  for manifest in package.json client/package.json; do
    [ "$(version_of $manifest)" = "$version" ] || problems="$problems
$manifest: expected version $version, got $(version_of $manifest)"
    for field in repository bugs homepage; do
      case $(node -p "JSON.stringify(require('./$manifest').$field ?? 'missing')") in
        *OWNER*|*missing*) problems="$problems
$manifest: expected the address of the project in $field, got a placeholder" ;;
      esac
    done
  done
  for file in $(git grep -l OWNER/ -- ':!test' ':!scripts/release.sh'); do problems="$problems
$file: expected the address of the project, got the placeholder OWNER/"; done
  [ "$(node -p "require('./package-lock.json').version")" = "$version" ] || problems="$problems
package-lock.json: expected version $version; npm version writes both"
  grep -q "^## $version\$" CHANGELOG.md || problems="$problems
CHANGELOG.md: expected a section ## $version"
  # Packages take whole folders: what git ignores there would be published.
  changed=$(git status --porcelain && git status --porcelain --ignored -- docs client | grep -Ev '(node_modules|dist)/$' || true)
  [ -z "$changed" ] && git rev-parse --quiet --verify HEAD > /dev/null || problems="$problems
git: expected a clean tree, and no ignored files in docs/ and client/"
  [ -z "$problems" ] || { echo "not released:$problems" >&2; exit 1; }
}

notes() {
  text=$(awk -v version="${1#v}" '/^## /{ inside = $2 == version; next } inside' CHANGELOG.md)
  [ -n "$text" ] || { echo "CHANGELOG.md: expected a section ## ${1#v}" >&2; exit 1; }
  echo "$text"
}

# npm leaves out what development needs too, so it gets the manifests without that.
sbom() {
  bare=$(mktemp -d)
  node -e '
    const { readFileSync, writeFileSync } = require("fs")
    const read = name => JSON.parse(readFileSync(name, "utf8"))
    const [manifest, lock] = [read("package.json"), read("package-lock.json")]
    delete manifest.devDependencies
    delete lock.packages[""].devDependencies
    lock.packages = Object.fromEntries(Object.entries(lock.packages).filter(([, { dev }]) => !dev))
    writeFileSync(`${process.argv[1]}/package.json`, JSON.stringify(manifest))
    writeFileSync(`${process.argv[1]}/package-lock.json`, JSON.stringify(lock))' "$bare"
  (cd "$bare" && npm sbom --package-lock-only --sbom-format=spdx)
  rm -r "$bare"
}

pack() {
  umask 022
  mkdir "$1"
  npm pack --pack-destination "$1" > /dev/null
  npm pack ./client --pack-destination "$1" > /dev/null
  node --import tsx scripts/wordpress.ts "$(cd "$1" && pwd)/powgate-wordpress.zip" > /dev/null
  sbom > "$1/powgate.spdx.json"
  (cd "$1" && sha256sum -- *.tgz *.zip *.spdx.json > SHA256SUMS && cat SHA256SUMS)
}

publish() {
  [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ] || { echo 'publish: provenance needs the identity of the workflow' >&2; exit 1; }
  # npm takes dir/x.tgz for a repository on GitHub, and ./x.tgz for a file. What a first try has published stays.
  cd "$1" && for package in ./*.tgz; do
    name=$(tar xzOf "$package" package/package.json | node -p 'const { name, version } = JSON.parse(require("fs").readFileSync(0)); `${name}@${version}`')
    [ -n "$(npm view "$name" version 2> /dev/null)" ] || npm publish --provenance --access public "$package"
  done
}

image() {
  docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max --push \
    --metadata-file image.json --tag "$2:${1#v}" .
  cosign sign --yes "$2@$(node -p "require('./image.json')['containerimage.digest']")"
}

step=${1:-}
case $step in
  sbom) sbom ;;
  check|notes|pack|publish) [ -n "${2:-}" ] || { "$0"; exit 2; }; shift; "$step" "$@" ;;
  image) [ -n "${3:-}" ] || { "$0"; exit 2; }; shift; "$step" "$@" ;;
  *) sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2; exit 2 ;;
esac
