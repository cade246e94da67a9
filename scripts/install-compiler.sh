#!/bin/sh
# Sees to it that there is a C compiler, which Go's race detector needs. Like install-postgres.sh, it prints and
# changes nothing if there is one, installs Debian's if it may, and else says what to install.
set -eu

# works reports whether a program can be compiled and linked: without libc's headers gcc alone is not enough.
works() {
	echo '#include <stdlib.h>
int main(void) { return EXIT_SUCCESS; }' | ${CC:-gcc} -x c -o /dev/null - 2>/dev/null
}

if works; then
	exit 0
fi
if [ "$(id -u)" -eq 0 ]; then
	as_root=
else
	as_root='sudo -n'
fi
if [ -n "${CC:-}" ] || ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
	echo "install-compiler: the race detector needs a C compiler; run this as root, then try again: apt-get install gcc libc6-dev" >&2
	exit 1
fi
echo "install-compiler: installing gcc with apt-get" >&2
if ! said=$({ $as_root apt-get -qq update && $as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get -qq --yes --no-install-recommends install gcc libc6-dev; } 2>&1); then
	echo "$said" >&2
	exit 1
fi
works || { echo "install-compiler: gcc is installed, and compiles nothing" >&2; exit 1; }
