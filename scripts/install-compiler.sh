#!/bin/sh
# Installs a C compiler for Go's race detector.
#
# Like install-postgres.sh it does nothing if a compiler is installed. Otherwise it installs
# Debian's package if permitted, or prints the package to install.
set -eu

# works reports whether a program compiles and links: gcc alone lacks libc's headers.
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
