#!/bin/sh
# Installs Node.js and npm for the test of the client libraries.
#
# Like install-postgres.sh it does nothing if they are installed. Otherwise it installs Debian's
# packages if permitted, or prints the packages to install.
set -eu

oldest=18

# usable reports whether node and npm are on PATH, and node has a supported version.
usable() {
	command -v npm >/dev/null && major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') && [ "${major:-0}" -ge "$oldest" ]
}

if usable; then
	exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
else
	as_root='sudo -n'
fi
if command -v node >/dev/null || ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
	echo "install-node: the client libraries need npm, and Node.js $oldest or newer: see https://nodejs.org/en/download" >&2
	exit 1
fi
echo "install-node: installing Node.js and npm with apt-get" >&2
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install nodejs npm; } 2>&1); then
	echo "$said" >&2
	exit 1
fi
usable || { echo "install-node: this system offers no Node.js $oldest with npm: see https://nodejs.org/en/download" >&2; exit 1; }
