# What a developer runs. `make help` lists it.

export CGO_ENABLED ?= 0
go = $(if $(shell command -v go 2>/dev/null),go,$(error Go is missing: install Go 1.26 or newer, see https://go.dev/doc/install))
space := $(subst ,, )
module := $(shell sed -n "s/^module //p" go.mod)
golangci = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
gotestsum = v1.13.0
dockerfilelint = dockerfilelint@1.8.0

# Packages outside the standard library are compiled without inlining: a third less time to compile, and the tests run no
# slower to speak of. The exception computes.
uninlined = github.com/... golang.org/... google.golang.org/... $(module)/...
inlined = $(module)/internal/picture

# The race detector does not instrument these libraries: they hash, inflate, decode or tokenize what they are given, share
# nothing between goroutines, and run several times as long when instrumented. Libraries with generic code stay instrumented:
# the linker keeps one copy of an instance for all packages, and an uninstrumented copy of a sync type reports false races.
# encoding/json and encoding/xml use sync.Map, so -l keeps it from inlining, and so from instantiating, sync's generic code.
uninstrumented = golang.org/x/crypto/argon2 golang.org/x/crypto/scrypt compress/flate image/... golang.org/x/image/... \
	github.com/go-json-experiment/json/jsontext github.com/go-json-experiment/json/internal/jsonwire

# -dwarf=false omits debugging information, which no test reads: a tenth of the time to compile. Of the patterns that match a
# package the last one counts, so each has all flags of its packages.
raceflags = -race -gcflags=all=-dwarf=false \
	$(foreach p,$(uninlined),'-gcflags=$(p)=-dwarf=false -l') $(foreach p,$(inlined),-gcflags=$(p)=-dwarf=false) \
	$(foreach p,$(uninstrumented),'-gcflags=$(p)=-dwarf=false -race=false') \
	$(foreach p,encoding/json encoding/xml,'-gcflags=$(p)=-dwarf=false -race=false -l')
# Without tests there is nothing to run, and `make lint` checks that they compile: the programs of bench/ take 8 s.
tested = $$($(go) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
# netgo, osusergo: the race detector needs cgo, but the product has Go's own resolver, and so have the tests.
testflags = $$($(go) env GOFLAGS) -vet=off -tags=netgo,osusergo -ldflags=-w $(raceflags)

.PHONY: help go run build console console-dev console-pictures console-vitals test quick check lint generate verify bench bench-check soak failover full release deploy chart postgresql postgis pgbackrest chromium compiler node deno clients s3 progress

##@ While developing

help: ## list the targets
	@awk -F ':.*## ' '/^##@ / { print substr($$0, 5) ":" } /^[a-z0-9-]+:.*## / { printf "  make %-13s%s\n", $$1, $$2 }' Makefile

run: go postgresql build ## start Socle on ./socle-data; ARGS='--addr 127.0.0.1:9000' for flags of socle serve
	@exec bin/socle serve $(ARGS)

# Announces the compilation, which takes a minute, if bin/socle is missing or older than a source.
build: go ## build bin/socle
	@if find cmd console/console.go console/dist internal go.mod go.sum -type f -newer bin/socle ! -name '*_test.go' ! -path '*/testdata/*' 2>&1 | grep -q .; then \
		echo "build: compiling bin/socle, which takes a minute the first time" >&2; fi
	@$(go) build -trimpath -ldflags='-s -w' -o bin/socle ./cmd/socle

console: node ## build the web console into console/dist, which is committed; needs Node.js 20.19
	@scripts/build-console.sh

console-pictures: build clients chromium deno ## take the pictures of docs/console.md
	@node scripts/console-pictures.mjs bin/socle

console-vitals: build clients chromium ## print the times of the console's screens, and of a grid of a million rows
	@node scripts/console-vitals.mjs bin/socle

console-dev: node ## serve the web console while its sources change; SOCLE_URL=http://host:port for a server elsewhere
	@cd console && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run dev

# `make lint` vets. atexit_sleep_ms: without it the detector waits a second at the end of each package.
# GOGC, GOMEMLIMIT: tests keep little memory and allocate much of it, so collecting at twice the live heap would run all the
# time; the limit is for the tests that do keep much, of which the detector makes several times as much.
# -ldflags=-w omits debugging information of the linker: a third of the time to link.
# The longest tests begin first, so that none of them runs alone at the end.
# SOCLE_TEST_CLUSTER: initdb runs once, see package pgtest.
# GOFLAGS, rather than arguments: the go list of package laws would otherwise compile all packages once more.
test: go postgresql postgis pgbackrest chromium compiler clients deno s3 progress ## run all tests with the race detector on a private PostgreSQL
	@rm -rf bin/cluster && mkdir -p bin/cluster
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 GOGC=400 GOMEMLIMIT=1GiB SOCLE_TEST_CLUSTER=$(CURDIR)/bin/cluster GOFLAGS="$(testflags)" \
	bin/gotestsum-$(gotestsum) --format pkgname --hide-summary skipped -- -parallel 4 -timeout 30m $(tested)

# Left out are packages whose tests start whole servers, kill programs, or need more than Go and PostgreSQL; so does
# TestGeoJSON. The tests of an operation are those of its name in internal/api.
served = api authapi backup/integration blob cli function function/runtime function/sandbox functionapi pgserver pgtest server standalone
quick: go postgresql ## run the tests of packages' own rules, without the race detector: they need Go and PostgreSQL only
	@rm -rf bin/cluster && mkdir -p bin/cluster
	GOGC=400 SOCLE_TEST_CLUSTER=$(CURDIR)/bin/cluster $(go) test -vet=off -skip '^TestGeoJSON$$' \
		$$(printf '%s\n' $(tested) | grep -vxE '$(module)/internal/($(subst $(space),|,$(served)))')

check: lint test ## run lint and test: what a change must pass

lint: go ## check formatting, vet, golangci-lint, go.mod, the builds for macOS and Windows
	@unformatted=$$(gofmt -l $$($(go) list -f '{{.Dir}}' ./...)); test -z "$$unformatted" || { echo "gofmt -w: $$unformatted"; exit 1; }
	$(go) vet ./...
	$(go) run $(golangci) run ./...
	$(go) mod tidy -diff
	GOOS=darwin GOARCH=arm64 $(go) build -o /dev/null ./cmd/socle
	GOOS=windows GOARCH=amd64 $(go) build -o /dev/null ./cmd/socle

generate: postgresql ## write the generated files: the documents of the API and of the commands, the dumps of the schemas, the licenses
	$(go) test ./internal/laws -run Current -update

verify: postgresql node ## check that the generated files and the built console are current
	$(go) test ./internal/laws -run Current
	@built=$$(mktemp -d) && scripts/build-console.sh $$built && diff -r --brief $$built console/dist; \
		status=$$?; rm -rf "$$built"; exit $$status

# PEERS=1 adds PocketBase and Directus, which it installs. With ARGS only the comparisons run.
bench: go postgresql build ## compare Socle to bare servers, PEERS=1 also to other products; ARGS='-only upload' for flags
	@for b in platform storage auth rest; do \
		printf '\nbench/%s\n' $$b && $(go) run ./bench/$$b -socle bin/socle $(ARGS) || exit 1; done
	@$(if $(PEERS),printf '\nbench/peers\n' && $(go) run ./bench/peers -socle bin/socle $(ARGS))
	@$(if $(ARGS),,printf '\nbench/projects\n' && $(go) run ./bench/projects && printf '\nbench/footprint.sh\n' && sh bench/footprint.sh)

bench-check: postgresql ## compare the benchmarks' ratios to their limits with those in bench/*/ratios.json
	@for stored in bench/*/ratios.json; do \
		now=$$(mktemp) && $(go) run ./$$(dirname $$stored) $$(sed -n 's/^.*"command": "\(.*\)",/\1/p' $$stored) -json $$now && \
		$(go) run ./bench/check $$stored $$now && rm $$now || exit 1; done

soak: postgresql ## kill Socle, PostgreSQL and both, 50 times each under load; SOAK=n for another number
	SOAK=$(or $(SOAK),50) $(go) test ./internal/server -run 'Killed|Together' -timeout 2h -v
	FLIPS=$(or $(FLIPS),67) $(go) test ./internal/backup/integration -run TestRestoreOfDamage -timeout 2h -v

failover: go postgresql ## kill parts of a cluster of three PostgreSQL nodes and two servers, under writers; ARGS='-events kill'
	@scripts/install-patroni.sh
	@PATH="$$PATH:/usr/sbin" $(go) run ./bench/failover $(ARGS)

full: postgresql ## upload to a full and to a read-only disk; needs root to mount small file systems
	@disk=$$(mktemp -d) && mount -t tmpfs -o size=4m socle-full $$disk && \
	{ FULL_DISK=$$disk $(go) test ./internal/server -run 'DoNotFit|ReadOnly' -count 1 -v; status=$$?; umount $$disk; rmdir $$disk; exit $$status; }

release: go ## build a release into dist/: archives, packages, checksums, bills of materials; VERSION=1.2.3, or that of git
	@scripts/release.sh

# The packages of this machine's architecture only. promtool is in Debian's package prometheus.
deploy: go ## check what is in deploy/: install the package in a fresh Debian, lint Dockerfile and rules; needs root
	TARGETS=linux/$$($(go) env GOARCH) DIST=dist/check scripts/release.sh
	scripts/test-package.sh dist/check/socle_*.deb
	promtool check rules deploy/prometheus/alerts.yaml
	promtool test rules deploy/prometheus/alerts_test.yaml
	npx --yes $(dockerfilelint) deploy/Dockerfile
	@$(MAKE) --no-print-directory chart

chart: bin/tools/kubectl-validate ## check the Helm chart against the schemas of Kubernetes and CloudNativePG
	$(go) test -C tools/chart . -kubectl-validate $(CURDIR)/$<

##@ Installing what the targets above need, which they run themselves

# Before anything is installed.
go: ## check that Go is installed
	@: $(go)

postgresql: ## install PostgreSQL, if it is missing
	@scripts/install-postgres.sh

# For tests alone: nothing that Socle runs needs it.
postgis: postgresql ## install PostGIS, for tests of GeoJSON
	@scripts/install-postgis.sh

pgbackrest: postgresql ## install pgBackRest, for tests of point-in-time recovery
	@scripts/install-pgbackrest.sh

chromium: ## install Chromium, for tests of pages
	@scripts/install-chromium.sh

# The race detector needs one.
compiler: ## install a C compiler, which the race detector needs
	@scripts/install-compiler.sh

node: ## install Node.js, for tests of the JavaScript clients
	@scripts/install-node.sh

deno: node ## install Deno, for tests of functions
	@scripts/install-deno.sh

# The S3 service that storage is tested with. Built with the flags of the tests it shares with them the standard library, and
# the AWS SDK as long as both go.mod name the same versions.
s3: bin/s3 ## compile the S3 service of the tests

bin/s3: $(wildcard tools/s3/*) | compiler
	@mkdir -p bin && CGO_ENABLED=1 GOFLAGS="$(testflags)" $(go) build -C tools/s3 -o $(CURDIR)/$@ .

# go test prints packages in their order, so a slow one holds back the lines of all that follow; gotestsum does not. Like the
# S3 service it is built with the flags of the tests.
progress: bin/gotestsum-$(gotestsum) ## compile gotestsum, which prints the progress of make test

# The checker of the Helm chart.
bin/tools/kubectl-validate:
	@GOBIN=$(CURDIR)/bin/tools CGO_ENABLED=0 $(go) install sigs.k8s.io/kubectl-validate@v0.0.4

bin/gotestsum-$(gotestsum): | compiler
	@mkdir -p bin/tools && CGO_ENABLED=1 GOFLAGS="$(testflags)" GOBIN=$(CURDIR)/bin/tools $(go) install gotest.tools/gotestsum@$(gotestsum) && mv bin/tools/gotestsum $@

# The client libraries, the compiler, the mail server and the driver of Chromium that tests use: installed anew when the lock file is newer.
libraries = internal/server/testdata/clients
clients: node $(libraries)/node_modules/.package-lock.json ## install the JavaScript clients and tools of the tests

$(libraries)/node_modules/.package-lock.json: $(libraries)/package-lock.json | node
	@echo "clients: installing with npm" >&2
	@cd $(libraries) && npm ci --loglevel=error >/dev/null && touch node_modules/.package-lock.json
