#!/bin/sh
# Installs PostgreSQL's server binaries, for make run, make test and CI.
#
# It does nothing, without output, if they are installed. Otherwise it installs Debian's package if
# permitted (as root, or by sudo without a password), without the package's default server: Socle
# runs its own. If not permitted, it prints the package to install and exits with status 1.
#
# With --where it installs nothing and prints the folder of the binaries, or fails without any.
set -eu

oldest=15

# fail prints the problem with its remedy, and exits.
fail() {
	echo "install-postgres: $*" >&2
	exit 1
}

# usable reports whether folder $1 has all binaries that Socle needs, in a supported version.
usable() {
	for program in postgres initdb pg_dump pg_restore; do
		[ -x "$1/$program" ] || return 1
	done
	major=$("$1/postgres" --version | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge "$oldest" ]
}

# found reports whether pgserver.Find would find PostgreSQL, and sets where to the folder that Find
# would choose.
found() {
	if [ -n "${SOCLE_POSTGRES_BIN:-}" ]; then
		where=$SOCLE_POSTGRES_BIN
		usable "$where"
		return
	fi
	on_path=$(command -v postgres) && on_path=$(dirname "$(readlink -f "$on_path")")
	where=$(pg_config --bindir 2>/dev/null) || where=
	if usable "$where"; then
		return
	fi
	newest=0
	for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
		/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
		/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin; do
		if usable "$folder" && [ "$major" -gt "$newest" ]; then
			where=$folder newest=$major
		fi
	done
	if [ "$newest" -gt 0 ]; then
		return
	fi
	where=$on_path
	usable "$where"
}

if [ "${1:-}" = --where ]; then
	found || fail "there is no PostgreSQL $oldest or newer"
	echo "$where"
	exit 0
fi

if found; then
	exit 0
fi
if [ -n "${SOCLE_POSTGRES_BIN:-}" ]; then
	fail "SOCLE_POSTGRES_BIN is $SOCLE_POSTGRES_BIN, which has no server binaries of PostgreSQL $oldest or newer"
fi
if ! command -v apt-get >/dev/null; then
	fail "install the server of PostgreSQL $oldest or newer (macOS: brew install postgresql@17; Fedora: dnf install postgresql-server)"
fi

if [ "$(id -u)" -eq 0 ]; then
	as_root=
elif sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	fail "run this as root, then try again: apt-get install postgresql"
fi

# apt runs apt-get as root and prints its output only on failure.
apt() {
	if ! said=$($as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq --yes --no-install-recommends "$@" 2>&1); then
		echo "$said" >&2
		fail "apt-get $* did not work"
	fi
}

echo "install-postgres: installing PostgreSQL with apt-get" >&2
apt update
offered=$(apt-cache show --no-all-versions postgresql 2>/dev/null | sed -n 's/^Version: \([0-9]*\).*/\1/p')
if [ "${offered:-0}" -lt "$oldest" ]; then
	fail "this system offers PostgreSQL ${offered:-not at all}, and Socle needs $oldest or newer:" \
		"see https://www.postgresql.org/download/linux/"
fi

# This file stops the package from creating and starting a default server. It is removed afterwards,
# so that packages installed later behave as usual.
apt install postgresql-common
refusal=/etc/postgresql-common/createcluster.d/socle-install.conf
trap '$as_root rm -f "$refusal"' EXIT
$as_root mkdir -p "${refusal%/*}"
echo 'create_main_cluster = false' | $as_root tee "$refusal" >/dev/null
apt install postgresql

found || fail "PostgreSQL is installed, and its binaries are not where they should be"
