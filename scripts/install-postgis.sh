#!/bin/sh
# Sees to it that the PostgreSQL of the tests has PostGIS, which the rows API is tested with and Socle itself never needs.
# Like install-postgres.sh, it prints and changes nothing if it is there, installs Debian's if it may, and else says what to install.
set -eu

# fail says what is wrong and what to do, and ends.
fail() {
	echo "install-postgis: $*" >&2
	exit 1
}

bin=$("${0%/*}/install-postgres.sh" --where)
version=$("$bin/postgres" --version | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')

# found reports whether that PostgreSQL can make the extension. Debian keeps what its servers share in another tree than their binaries.
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
