#!/bin/sh
# Builds a release into dist/ (or DIST): archives of the binary for each system, packages for Debian
# and Red Hat, a bill of materials for each binary, and SHA256SUMS.
#
# The version is VERSION, or that of git describe. TARGETS restricts the systems, as in
# TARGETS=linux/amd64. Times in the files are that of the commit (SOURCE_DATE_EPOCH), so that a second
# run makes the same bytes.
set -eu

cd "$(dirname "$0")/.."
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 # newer ones need modules that the proxy lacks
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}
dist=${DIST:-dist}

VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo 0.0.0)}
VERSION=${VERSION#v}
case $VERSION in
[0-9]*.*) ;;
*) VERSION=0.0.0-$VERSION ;; # no tag yet: packages need a number
esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION SOURCE_DATE_EPOCH CGO_ENABLED=0 LC_ALL=C TZ=UTC
umask 022

say() { echo "release: $*" >&2; }

# archive packs folder $1 as $2, with names, owners and times that do not depend on the machine.
archive() {
	find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
	case $2 in
	*.zip) (cd "${1%/*}" && find "${1##*/}" | sort | zip -q -X -@ "$2") ;;
	*) tar --sort=name --owner=0 --group=0 --numeric-owner --format=ustar -C "${1%/*}" -cf - "${1##*/}" | gzip -9n >"$2" ;;
	esac
}

rm -rf "$dist"
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say "Socle $VERSION"
flags="-s -w -X $(go list -m)/internal/build.stamp=$VERSION"
go build -C tools/release -trimpath -o "$work/bom" .
go build -trimpath -tags manpages -ldflags "$flags" -o "$work/writer" ./cmd/socle

# What is the same for all systems.
shared=$work/shared
mkdir -p "$shared/man" "$shared/completions"
"$work/writer" manpages "$shared/man"
find "$shared/man" -type f -exec gzip -9n {} +
for shell in bash zsh fish; do
	"$work/writer" completion $shell >"$shared/completions/socle.$shell"
done
"$work/writer" licenses >"$shared/THIRD-PARTY-LICENSES"
cp LICENSE README.md CHANGELOG.md "$shared"

for target in $targets; do
	GOOS=${target%/*} GOARCH=${target#*/} name=socle_${VERSION}_${target%/*}_${target#*/} binary=socle
	export GOOS GOARCH
	[ "$GOOS" != windows ] || binary=socle.exe
	say "$GOOS/$GOARCH"
	mkdir "$work/$name"
	go build -trimpath -ldflags "$flags" -o "$work/$name/$binary" ./cmd/socle
	cp -R "$shared/." "$work/$name"
	"$work/bom" "$VERSION" "$work/$name/$binary" >"$dist/$name.cdx.json"

	if [ "$GOOS" = linux ]; then
		rm -rf "$work/package"
		cp -R "$work/$name" "$work/package"
		scripts/install-deno.sh "$GOARCH" "$work/package/deno"
		for config in nfpm functions.nfpm; do
			for kind in deb rpm; do
				(unset GOOS; PACKAGE=$work/package ARCH=$GOARCH GOARCH='' go run $nfpm package \
					--config deploy/package/$config.yaml --packager $kind --target "$dist" >/dev/null)
			done
		done
	fi

	if [ "$GOOS" = windows ]; then
		archive "$work/$name" "$dist/$name.zip"
	else
		archive "$work/$name" "$dist/$name.tar.gz"
	fi
	unset GOOS GOARCH
done

(cd "$dist" && sha256sum -- * >SHA256SUMS)
say "$dist"
