#!/bin/sh
# Replaces the viewer of the API reference by another version from npm: vendor-viewer.sh VERSION.
#
# Then change the name in internal/server/docs.go and the notices in LICENSES.md. See
# docs/decisions/viewer.md.
set -eu

version=${1:?usage: vendor-viewer.sh VERSION}
folder=$(cd "${0%/*}/../internal/server/reference" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$work"
npm pack --silent "@scalar/api-reference@$version"
tar -xzf "scalar-api-reference-$version.tgz" package/dist/browser/standalone.js
rm -f "$folder"/scalar-*.js.gz
gzip -9n <package/dist/browser/standalone.js >"$folder/scalar-$version.js.gz"
echo "vendor-viewer: wrote $folder/scalar-$version.js.gz" >&2
