#!/bin/sh
# Builds the web console: into console/dist, which the binary embeds, or into the folder $1.
#
# It needs npm, and Node.js 20.19 or newer. Packages come as the lock file has them, and run no
# scripts while they are installed.
set -eu

cd "$(dirname "$0")/../console"
out=${1:-$PWD/dist}

npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent build -- --outDir "$out" --emptyOutDir
node ../scripts/console-licenses.mjs >"$out/licenses.txt"
