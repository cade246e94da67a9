#!/bin/sh
# Installs Patroni, etcd and HAProxy, for `make failover`. Socle itself never needs them on its machine.
#
# It does nothing if they are installed. Otherwise it installs Debian's packages if permitted, or
# prints the packages to install.
set -eu

# fail prints the problem with its remedy, and exits.
fail() {
	echo "install-patroni: $*" >&2
	exit 1
}

packages=
for pair in patroni:patroni etcd:etcd-server haproxy:haproxy; do
	PATH="$PATH:/usr/sbin" command -v "${pair%%:*}" >/dev/null || packages="$packages ${pair##*:}"
done
if [ -z "$packages" ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	fail "the cluster needs$packages: install them, then try again"
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
elif sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	fail "the cluster needs more programs; run this as root, then try again: apt-get install$packages python3-etcd"
fi
echo "install-patroni: installing$packages with apt-get" >&2
# The packages start services of their own at installation, which nothing here uses: a policy forbids it.
policy=/usr/sbin/policy-rc.d
if [ -z "$as_root" ] && [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	trap 'rm -f "$policy"' EXIT
fi
# shellcheck disable=SC2086 # one argument for each package
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install $packages python3-etcd python3-psycopg2; } 2>&1); then
	echo "$said" >&2
	fail "apt-get could not install$packages: install them by hand, then try again"
fi
