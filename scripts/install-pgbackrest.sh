#!/bin/sh
# Installs pgBackRest for the test of the manual's section on physical backups. Socle itself never
# needs it.
#
# Like install-postgres.sh it does nothing if pgBackRest is installed. Otherwise it installs
# Debian's package if permitted, or prints the package to install.
set -eu

if command -v pgbackrest >/dev/null; then
	exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
else
	as_root='sudo -n'
fi
if ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
	echo "install-pgbackrest: the tests need pgBackRest; install it (Debian: apt-get install pgbackrest; Fedora: dnf install pgbackrest), then try again" >&2
	exit 1
fi
echo "install-pgbackrest: installing pgbackrest with apt-get" >&2
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install pgbackrest; } 2>&1); then
	echo "$said" >&2
	exit 1
fi
