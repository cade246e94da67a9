#!/bin/sh
# Measures the footprint of an idle Socle: time of a first and of a later start, time to create the
# first project, memory at rest, size of the binary and of the code, direct dependencies. It runs on
# Linux and needs curl.
#
#   sh bench/footprint.sh
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
chmod 711 "$dir"
pid=
finish() {
	[ -z "$pid" ] || { kill "$pid" 2>/dev/null && wait "$pid" || true; }
	rm -rf "$dir"
}
trap finish EXIT INT TERM
go build -o "$dir/socle" ./cmd/socle

now() { date +%s%N; }
since() { echo $((($(now) - $1) / 1000000)); }

# start starts the server and waits until it is ready. The address is in its first line of output.
start() {
	: >"$dir/out"
	begun=$(now)
	SOCLE_ADDR=127.0.0.1:0 SOCLE_DATA_DIR="$dir/data" SOCLE_LOG_LEVEL=error "$dir/socle" serve >"$dir/out" &
	pid=$!
	url=
	while [ -z "$url" ]; do
		kill -0 "$pid"
		url=$(sed -n 's/^Socle is ready at //p' "$dir/out")
		sleep 0.005
	done
	until curl -sf "$url/readyz" >"$dir/ready"; do sleep 0.005; done
	echo "$1: $(since "$begun") ms"
}
stop() {
	kill "$pid"
	wait "$pid"
	pid=
}

# memory prints the proportional memory of a process and all its children, in MiB.
memory() {
	for p in "$@"; do
		awk '/^Pss:/ {print $2}' "/proc/$p/smaps_rollup"
	done | awk '{sum += $1} END {printf "%.0f MiB\n", sum / 1024}'
}

start "first start"
stop
start "later start"
token=$(curl -s -X POST "$url/users" -d '{"username": "ada", "email": "ada@example.com", "password": "correct horse battery"}' |
	sed 's/.*"token":"\([^"]*\)".*/\1/')
begun=$(now)
curl -sf -X POST "$url/projects" -H "Authorization: Bearer $token" -d '{"name": "first"}' >"$dir/project"
echo "first project: $(since "$begun") ms"
begun=$(now)
curl -sf -X POST "$url/projects" -H "Authorization: Bearer $token" -d '{"name": "second"}' >"$dir/project"
echo "second project: $(since "$begun") ms"
sleep 45 # idle connections have been closed by then
postmaster=$(head -1 "$dir/data/postgres/data/postmaster.pid")
echo "memory at rest, socle: $(memory "$pid")"
echo "memory at rest, PostgreSQL: $(memory "$postmaster" $(pgrep -P "$postmaster"))"
stop
echo "binary: $(($(stat -c %s "$dir/socle") / 1048576)) MiB"
echo "lines of code: $(git ls-files '*.go' '*.sql' | grep -v -e _test.go -e schema.sql | xargs cat | wc -l)"
echo "lines of tests: $(git ls-files '*_test.go' | xargs cat | wc -l)"
echo "direct dependencies: $(go mod edit -json | sed -n '/"Require"/,/]/p' | awk '/"Path"/ {n++} /"Indirect": true/ {n--} END {print n}')"
