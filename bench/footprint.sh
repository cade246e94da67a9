#!/bin/sh
# Measures the footprint of Socle: time of a first and of a later start, time to create the first
# project, memory at rest, after load and for each idle project, size of the binary and of the code,
# direct dependencies. It runs on Linux and needs curl.
#
#   [PROJECTS=50] [SOCLE=bin/socle] sh bench/footprint.sh
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
if [ -n "${SOCLE:-}" ]; then
	cp "$SOCLE" "$dir/socle"
else
	go build -trimpath -ldflags='-s -w' -o "$dir/socle" ./cmd/socle
fi

now() { date +%s%N; }
since() { echo $((($(now) - $1) / 1000000)); }

# start starts the server and waits until it is ready. The address is in its first line of output.
start() {
	: >"$dir/out"
	begun=$(now)
	SOCLE_ADDR=127.0.0.1:0 SOCLE_RATE_LIMIT=off SOCLE_DATA_DIR="$dir/data" SOCLE_LOG_LEVEL=error "$dir/socle" serve >"$dir/out" &
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

# memory prints the proportional memory of processes, in KiB.
memory() {
	for p in "$@"; do
		awk '/^Pss:/ {print $2}' "/proc/$p/smaps_rollup"
	done | awk '{sum += $1} END {print sum}'
}
postgres() {
	postmaster=$(head -1 "$dir/data/postgres/data/postmaster.pid")
	memory "$postmaster" $(pgrep -P "$postmaster")
}
mib() { awk "BEGIN {printf \"%.0f MiB\", $1 / 1024}"; }

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
echo "memory at rest, socle: $(mib "$(memory "$pid")")"
rest=$(postgres)
echo "memory at rest, PostgreSQL: $(mib "$rest")"

# load reads rows and lists of the platform, and writes rows, with 16 connections.
load() {
	project=$(sed 's/.*"uuid":"\([^"]*\)".*/\1/; q' "$dir/project")
	key=$(curl -sf -X POST "$url/projects/$project/keys" -H "Authorization: Bearer $token" \
		-d '{"name": "load", "kind": "secret"}' | sed 's/.*"key":"\([^"]*\)".*/\1/')
	curl -sf -X POST "$url/tables" -H "Authorization: Bearer $token" -H "X-Project: $project" -o /dev/null \
		-d '{"name": "events", "columns": [{"name": "id", "type": "bigserial", "primary": true}, {"name": "note", "type": "text"}]}'
	curl -sf -Z --parallel-max 16 -o /dev/null -H "apikey: $key" -H 'Content-Type: application/json' \
		-d '{"note": "some text"}' "$url/projects/$project/rest/v1/events#[1-5000]"
	curl -sf -Z --parallel-max 16 -o /dev/null -H "apikey: $key" "$url/projects/$project/rest/v1/events?id=gt.[1-20000]&limit=20"
	curl -sf -Z --parallel-max 16 -o /dev/null -H "Authorization: Bearer $token" "$url/projects?page=[1-5000]"
}
load
echo "memory after load, socle: $(mib "$(memory "$pid")")"
sleep 45
rest=$(postgres)
projects=${PROJECTS:-50}
for n in $(seq "$projects"); do
	curl -sf -X POST "$url/projects" -H "Authorization: Bearer $token" -d "{\"name\": \"idle $n\"}" -o /dev/null
done
sleep 45
echo "memory of PostgreSQL for each of $projects idle projects: $((($(postgres) - rest) / projects)) KiB"
stop
echo "binary: $(($(stat -c %s "$dir/socle") / 1048576)) MiB"
echo "lines of code: $(git ls-files '*.go' '*.sql' | grep -v -e _test.go -e schema.sql | xargs cat | wc -l)"
echo "lines of tests: $(git ls-files '*_test.go' | xargs cat | wc -l)"
echo "direct dependencies: $(go mod edit -json | sed -n '/"Require"/,/]/p' | awk '/"Path"/ {n++} /"Indirect": true/ {n--} END {print n}')"
