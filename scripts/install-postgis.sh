#!/bin/sh
# Installs PostGIS in the PostgreSQL of the tests, for the tests of the rows API. Socle itself never
# needs it.
#
# Like install-postgres.sh it does nothing if PostGIS is installed. Otherwise it installs Debian's
# package if permitted, or prints the package to install.
set -eu

# fail prints the problem with its remedy, and exits.
fail() {
	echo "install-postgis: $*" >&2
	exit 1
}

bin=$("${0%/*}/install-postgres.sh" --where)
version=$("$bin/postgres" --version | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')

# found reports whether that PostgreSQL has the extension. On Debian the servers' share directory is
# not beside their binaries.
found() {
	for folder in "$bin/../share/extension" "$bin/../share/postgresql/extension" "$bin/../share/postgresql@$version/extension" \
		"/usr/share/postgresql/$version/extension" "/usr/pgsql-$version/share/extension"; do
		if [ -e "$folder/postgis.control" ]; then
			return
		fi
	done
	return 1
}

if found; then
	exit 0
fi
package="postgresql-$version-postgis-3"
if ! command -v apt-get >/dev/null; then
	fail "the tests need PostGIS for PostgreSQL $version in $bin: install it (macOS: brew install postgis; Fedora: dnf install postgis), then try again"
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
elif sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	fail "the tests need PostGIS; run this as root, then try again: apt-get install $package"
fi
echo "install-postgis: installing $package with apt-get" >&2
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install "$package"; } 2>&1); then
	echo "$said" >&2
	fail "the tests need PostGIS for PostgreSQL $version, and apt-get could not install $package: install it by hand, then try again"
fi
found || fail "$package is installed, and the PostgreSQL in $bin does not see it"
