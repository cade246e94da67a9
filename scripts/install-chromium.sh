#!/bin/sh
# Installs Chromium's headless shell for the tests of pages. Socle itself never needs it.
#
# Like install-postgres.sh it does nothing if the shell is installed. Otherwise it installs Debian's
# package if permitted, falls back on an installed Chromium, or prints the package to install.
set -eu

if command -v chromium-headless-shell >/dev/null; then
	exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
else
	as_root='sudo -n'
fi
if ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
	if command -v chromium >/dev/null; then
		exit 0
	fi
	echo "install-chromium: the tests need chromium-headless-shell or chromium on PATH; install it (Debian: apt-get install chromium-headless-shell; Fedora: dnf install chromium), then try again" >&2
	exit 1
fi
echo "install-chromium: installing chromium-headless-shell with apt-get" >&2
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install chromium-headless-shell; } 2>&1); then
	if command -v chromium >/dev/null; then
		exit 0
	fi
	echo "$said" >&2
	exit 1
fi
