#!/bin/sh
# What a release does, step by step; .github/workflows/release.yml calls each step on a tag. The first three run anywhere.
#
#   scripts/release.sh check v0.1.0    the tag, package.json and CHANGELOG.md name one version, and no placeholder is left
#   scripts/release.sh notes v0.1.0    prints the changes of this version
#   scripts/release.sh pack DIR        the packages of service and client, their bill of materials, and their hashes
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
  grep -q "^## $version\$" CHANGELOG.md || problems="$problems
CHANGELOG.md: expected a section ## $version"
  [ -z "$(git status --porcelain)" ] || problems="$problems
git: expected a clean tree"
  [ -z "$problems" ] || { echo "not released:$problems" >&2; exit 1; }
}

notes() {
  awk -v version="${1#v}" '/^## /{ inside = $2 == version; next } inside' CHANGELOG.md
}

pack() {
  mkdir -p "$1"
  npm pack --pack-destination "$1" > /dev/null
  npm pack ./client --pack-destination "$1" > /dev/null
  npm sbom --omit=dev --package-lock-only --sbom-format=spdx > "$1/powgate.spdx.json"
  (cd "$1" && sha256sum -- *.tgz *.spdx.json > SHA256SUMS && cat SHA256SUMS)
}

publish() {
  [ -n "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ] || { echo 'publish: provenance needs the identity of the workflow' >&2; exit 1; }
  for package in "$1"/*.tgz; do npm publish --provenance --access public "$package"; done
}

image() {
  docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max --push \
    --metadata-file image.json --tag "$2:${1#v}" .
  cosign sign --yes "$2@$(node -p "require('./image.json')['containerimage.digest']")"
}

step=${1:-}
case $step in
  check|notes|pack|publish|image) shift; "$step" "$@" ;;
  *) sed -n 's/^# \{0,1\}//p' "$0" | tail -n +2 >&2; exit 2 ;;
esac
