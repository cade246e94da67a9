#!/bin/sh
# Installs the Debian package $1 in a fresh Debian $2 (default bookworm), and uses it: serve, sign up,
# reinstall, remove. Checks the unit too, also with that of package socle-functions beside it. Needs root, debootstrap, systemd-analyze and curl, and a
# mirror of Debian (MIRROR).
set -eu

package=$(readlink -f "$1")
suite=${2:-bookworm}
system=$(mktemp -d)/system
served=

finish() {
	[ -z "$served" ] || kill "$served" 2>/dev/null || true
	[ -z "$served" ] || wait "$served" || true
	umount "$system/proc" 2>/dev/null || true
	rm -rf "${system%/*}"
}
trap finish EXIT

fail() {
	echo "test-package: $*" >&2
	exit 1
}

# inside runs a command in the fresh system.
inside() { DEBIAN_FRONTEND=noninteractive chroot "$system" "$@"; }

# quiet prints the output of a command only if it fails.
quiet() { "$@" >"${system%/*}/output" 2>&1 || { cat "${system%/*}/output" >&2; fail "$*"; }; }

quiet debootstrap --variant=minbase "$suite" "$system" "${MIRROR:-http://deb.debian.org/debian}"
mount -t proc proc "$system/proc"
chmod 1777 "$system/dev/shm" # for the shared memory of PostgreSQL
printf '#!/bin/sh\nexit 101\n' >"$system/usr/sbin/policy-rc.d" # no daemons in a chroot
chmod +x "$system/usr/sbin/policy-rc.d"
mkdir -p "$system/etc/postgresql-common/createcluster.d"
echo 'create_main_cluster = false' >"$system/etc/postgresql-common/createcluster.d/socle.conf"
cp "$package" "$system/socle.deb"

quiet inside apt-get update
quiet inside apt-get install --yes --no-install-recommends /socle.deb
version=$(dpkg-deb --field "$package" Version | tr '~' '-') # ~ precedes the name of a prerelease
[ "$(inside socle version)" = "socle $version" ] || fail "socle version prints $(inside socle version), want $version"
[ "$(inside stat -c '%U %G %a' /etc/socle/socle.env)" = 'root root 600' ] || fail "socle.env can be read by others"
[ -e "$system/usr/share/man/man1/socle-serve.1.gz" ] || fail "the manual is missing"
inside bash -c '. /usr/share/bash-completion/completions/socle' || fail "the completion does not load"
inside test -s /usr/share/doc/socle/THIRD-PARTY-LICENSES || fail "the licenses are missing"

systemd-analyze verify --root="$system" --man=no socle.service || fail "the unit is wrong"
systemd-analyze security --offline=true --threshold=20 --root="$system" --no-pager socle.service | tail -n 1

# What systemd does: the folder of the state, the user, the environment.
inside install -d -o socle -g socle -m 700 /var/lib/socle
chroot "$system" sh -c 'set -a; . /etc/socle/socle.env; cd /var/lib/socle
	exec setpriv --reuid=socle --regid=socle --clear-groups socle serve --addr 127.0.0.1:0' >"${system%/*}/served" 2>"${system%/*}/log" &
served=$!
url=
for _ in $(seq 120); do
	url=$(sed -n 's/^Socle is ready at //p' "${system%/*}/served")
	[ -z "$url" ] || break
	kill -0 "$served" 2>/dev/null || { cat "${system%/*}/log" >&2; fail "socle serve ended"; }
	sleep 1
done
[ -n "$url" ] || { cat "${system%/*}/log" >&2; fail "socle serve is not ready"; }

curl -sf "$url/readyz" && echo
curl -sf "$url/users" -o /dev/null \
	-d '{"username": "ada", "email": "ada@example.com", "password": "correct horse battery"}' || fail "sign-up"
kill "$served"
wait "$served" || fail "socle serve did not stop cleanly"
served=

functions=$(dirname "$package")/socle-functions${package##*/socle}
cp "$functions" "$system/functions.deb"
quiet inside apt-get install --yes --no-install-recommends /functions.deb
inside /usr/lib/socle/deno/deno --version >/dev/null || fail "Deno does not start"
systemd-analyze verify --root="$system" --man=no socle.service || fail "the unit is wrong with functions"
systemd-analyze security --offline=true --threshold=40 --root="$system" --no-pager socle.service | tail -n 1
[ ! -e "$system/etc/apparmor.d/socle" ] || fail "an AppArmor profile where its rules are unknown"
# The kernel refuses user namespaces in a chroot, so doctor must say that functions are off.
inside setpriv --reuid=socle --regid=socle --clear-groups sh -c 'set -a; SOCLE_DATA_DIR=/var/lib/socle socle doctor' |
	grep -q 'edge functions are off: the kernel refuses user namespaces' || fail "doctor does not say why functions are off"
quiet inside apt-get install --yes --no-install-recommends apparmor
if [ -e "$system/etc/apparmor.d/abi/4.0" ]; then # Debian 13 and later
	inside apparmor_parser --skip-kernel-load --skip-cache /usr/share/socle/apparmor/socle || fail "the AppArmor profile is wrong"
	echo "AppArmor takes the profile"
fi
quiet inside apt-get remove --yes socle-functions
[ ! -e "$system/usr/lib/systemd/system/socle.service.d" ] || fail "a removed package left its settings of the unit"

echo '#changed' >>"$system/etc/socle/socle.env"
quiet inside apt-get install --yes --reinstall /socle.deb
grep -q '^#changed' "$system/etc/socle/socle.env" || fail "an upgrade replaced the settings"
quiet inside apt-get remove --yes socle
[ ! -e "$system/usr/bin/socle" ] || fail "a removed package left its binary"
[ -s "$system/var/lib/socle/secret.key" ] || fail "a removed package took the data along"
echo "test-package: $(basename "$package") works in Debian $suite"
