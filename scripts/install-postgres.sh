#!/bin/sh
# Sees to it that PostgreSQL's server binaries are there, for make run, make test and CI alike.
#
# Prints nothing and changes nothing if they are. Else installs Debian's package if it may (as root, or by
# a sudo that asks for no password), without the cluster and the server that the package makes by itself:
# Socle runs its own. Where it may not, one sentence says what to install, and the exit status is 1.
#
# With --where it installs nothing and prints the folder of the binaries, or fails if there are none.
set -eu

oldest=15

# fail says what is wrong and what to do, and ends.
fail() {
	echo "install-postgres: $*" >&2
	exit 1
}

# usable reports whether folder $1 has all binaries that Socle runs, of a version that it runs on.
usable() {
	for program in postgres initdb pg_dump pg_restore; do
		[ -x "$1/$program" ] || return 1
	done
	major=$("$1/postgres" --version | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
	[ "${major:-0}" -ge "$oldest" ]
}

# found reports whether PostgreSQL is where pgserver.Find looks for it, and leaves its folder, the one that Find takes, in where.
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

# apt runs apt-get as root and shows what it said only if it failed.
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

# The package asks this file whether to make and start a cluster of its own. It goes again afterwards: a later
# version is its owner's affair.
apt install postgresql-common
refusal=/etc/postgresql-common/createcluster.d/socle-install.conf
trap '$as_root rm -f "$refusal"' EXIT
$as_root mkdir -p "${refusal%/*}"
echo 'create_main_cluster = false' | $as_root tee "$refusal" >/dev/null
apt install postgresql

found || fail "PostgreSQL is installed, and its binaries are not where they should be"
