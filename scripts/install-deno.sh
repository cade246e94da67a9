#!/bin/sh
# Installs Deno, which runs functions, into bin/deno, or that of machine $1 (amd64, arm64) into folder
# $2. Socle itself starts without it.
#
# Like install-postgres.sh it does nothing if it is installed. Otherwise it takes the release of
# internal/function/runtime/releases.txt from npm's registry and checks its sum. Packages that the
# functions of tests import go into bin/deno/cache.
set -eu

cd "$(dirname "$0")/.."
machine=${1:-$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')}
target=${2:-bin/deno}
release=$(grep "^linux/$machine " internal/function/runtime/releases.txt) || {
	echo "install-deno: there is no Deno for Linux on $machine" >&2
	exit 1
}
# shellcheck disable=SC2086 # the fields of the line
set -- $release
package=$2 version=$3 sum=$4
functions=internal/server/testdata/functions/supabase/functions
if [ "$(cat "$target/version" 2>/dev/null)" = "$version" ] && { [ "$target" != bin/deno ] || [ -e bin/deno/cache/npm ]; }; then
	exit 0
fi

echo "install-deno: fetching Deno $version" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! said=$(cd "$folder" && npm pack --silent "@deno/$package@$version" 2>&1); then
	echo "$said" >&2
	echo "install-deno: the tests of functions need Deno; let npm reach its registry, then try again" >&2
	exit 1
fi
actual=$(node -p 'const { createHash } = require("crypto")
"sha512-" + createHash("sha512").update(require("fs").readFileSync(process.argv[1])).digest("base64")' "$folder"/*.tgz)
if [ "$actual" != "$sum" ]; then
	echo "install-deno: @deno/$package@$version has another sum than releases.txt" >&2
	exit 1
fi
tar -xzf "$folder"/*.tgz -C "$folder"
mkdir -p "$target"
chmod 755 "$folder/package/deno"
mv "$folder/package/deno" "$target/deno"
echo "$version" >"$target/version"

[ "$target" = bin/deno ] || exit 0
for module in "$functions"/*/index.ts; do
	DENO_DIR=$PWD/bin/deno/cache bin/deno/deno bundle --quiet --no-lock --node-modules-dir=none \
		--config "$functions/deno.json" --output "$folder/out.js" "$module"
done
