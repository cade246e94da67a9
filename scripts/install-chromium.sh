#!/bin/sh
# Installs Chromium for the test of the API reference. Socle itself never needs it.
#
# Like install-postgres.sh it does nothing if Chromium is installed. Otherwise it installs Debian's
# package if permitted, or prints the package to install.
set -eu

if command -v chromium >/dev/null; then
	exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
else
	as_root='sudo -n'
fi
if ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
	echo "install-chromium: the tests need chromium on PATH; install it (Debian: apt-get install chromium; Fedora: dnf install chromium), then try again" >&2
	exit 1
fi
echo "install-chromium: installing chromium with apt-get" >&2
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install chromium; } 2>&1); then
	echo "$said" >&2
	exit 1
fi
