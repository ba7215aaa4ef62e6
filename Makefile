# Ropewalk's commands for contributors. A newcomer only needs `make run` and `make test`.

GO ?= go

# $(go) is the go command in every recipe. The first recipe that runs it chooses the toolchain for all recipes and
# downloads it if necessary; make help and make clean don't need it. A nested make inherits the choice through its
# environment.
go = $(if $(filter 0,$(MAKELEVEL)),$(eval export GOTOOLCHAIN := $(or $(shell GO='$(GO)' test/toolchain),$(error there is no Go to build with))))$(eval go := $$(GO))$(go)

# Installed by test/install-deps for this repository only: uv and, on older systems, Node.
export PATH := $(CURDIR)/.cache/tools/bin:$(PATH)

BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse HEAD 2>/dev/null) -X main.date=$(shell git log -1 --format=%cI 2>/dev/null)
BUF      = $(go) tool -modfile=tools/buf/go.mod buf
LINT     = $(go) tool -modfile=$(CURDIR)/tools/golangci-lint/go.mod golangci-lint

# The database of known vulnerabilities for make check. Its version is pinned so that the result for a commit never
# changes; .github/workflows/vulnerabilities.yaml uses the newest version each week.
VULNDB  ?= v0.0.0-20261105234957-e22db6528018

.PHONY: run build plugins test test-fast test-deps test-race test-others test-plain test-postgres test-rust test-java test-keycloak servers conformance tasks schemathesis check vulnerabilities lint generate web bench microbench chaos fuzz dist release reproducible boot clean help

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

run: build ## build and start the server with the sample app running (PORT=8080 for another port)
	@exec $(BIN)/ropewalk serve --sample $(if $(PORT),--port $(PORT))

build: ## build bin/ropewalk
	@GO='$(go)' deploy/shim
	@CGO_ENABLED=0 $(go) build -tags shim -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ropewalk ./cmd/ropewalk

plugins: ## build every built-in adapter as a separate plugin binary
	@for d in $(foreach kind,$(notdir $(wildcard proto/ropewalk/*)),$(wildcard cmd/$(kind)-*)); do \
		CGO_ENABLED=0 $(go) build -trimpath -ldflags '-s -w' -o $(BIN)/plugins/$$(basename $$d) ./$$d || exit 1; done

# go test runs without vet, because make check runs it on everything. The test executables have no debugging
# information, because nothing reads it and the linker takes a long time to write it.
TESTFLAGS := -vet=off -ldflags='-s -w'

# The race detector watches everything except SQLite. SQLite is C translated to Go and keeps its own memory, separate
# from Go values. Watching it took most of the time of every test that stores something.
# internal/testenv builds the servers under test with the same flags.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false

# By default, a process with the race detector waits a second before it exits. That adds up to a minute across the test
# packages, and more across the servers and plugins that they start.
test test-race: export GORACE ?= atexit_sleep_ms=0

# Tests without the race detector. Some exercise programs that are not built here (browsers, compilers, package
# managers, clients, kits for plugins in other languages) or commands that end quickly. The race detector would find
# little in them that it doesn't find in the packages with the same code, and would make every server that they start
# three times slower. The same goes for tests with several servers, which share a database but no memory, and for tests
# that run the kits on hundreds of faulty plugins. The adapters pass the same kits with the race detector.
PLAIN := ./test/console ./cmd/ropewalk ./test/examples ./test/e2e/cluster ./plugins/auth/authtest ./test/clients \
	./test/conformance ./test/e2e/install ./test/e2e/operations \
	./plugins/audit/audittest ./plugins/protocoltest ./plugins/registry/registrytest ./plugins/sessionstore/sessionstoretest

# Tests that run again on PostgreSQL, because the code they test uses PostgreSQL differently from a SQLite file. They
# cover people, conversations and runs, starting and stopping a server, installed apps, and the API's responses and
# events about them. Not included are core/store and core/store/cluster, which test both databases in one run;
# test/e2e/cluster, whose servers always share a PostgreSQL; and test/e2e/plugins and test/e2e/mcp, which store sessions
# in plugins. The rest of PLAIN is also left out, because it stores nothing that the packages below don't store too.
STORING := ./core/access ./core/chat ./core/server ./test/e2e/accounts ./test/e2e/api ./test/e2e/apps ./test/e2e/chat ./test/e2e/login

# Without the race detector, tests use the same compiler settings as make build. Only the tests themselves then need
# compiling.
PLAINTEST = CGO_ENABLED=0 $(go) test -trimpath $(TESTFLAGS) -p 2

# Two lanes run in parallel, one with the race detector and one without. Together they run five packages at a time,
# because tests of processes, browsers and timeouts mostly wait: with fewer packages, two processors were idle a quarter
# of the time. If one lane fails, the other continues. The slowest packages come first, so that the run ends with short
# ones. The servers under test are compiled first; otherwise several packages would compile them at the same time.
test: test-deps ## install what the tests need and run them all (with the race detector where it helps), then again on PostgreSQL
	@$(go) build $(RACE) ./core/server
	@$(MAKE) --no-print-directory --keep-going --jobs=2 test-race test-others

# The second lane. Its second part runs even if the first fails, so that one run shows all failures.
test-others:
	@$(MAKE) --no-print-directory test-plain && plain=0 || plain=1; $(MAKE) --no-print-directory test-postgres && exit $$plain

# The tests that need only Go. This leaves out tests of programs and servers (test, cmd) and of the sandbox, the plugin
# kits, and the adapters that the kits test. Other tests that need more are skipped with -short (testenv.Program).
test-fast: ## run the tests that need only Go: no root, packages or network (two minutes at most; lists what it skips)
	@$(PLAINTEST) -p 8 -short -run '^(Test|Example)' $$($(go) list ./core/... ./internal/... ./plugins/... | grep -vE '/core/process$$|/plugins/.*/|/plugins/protocoltest$$|/internal/chaos')
	@echo 'Left out: programs and servers (cmd, test), the sandbox, kits and adapters, fuzzing, the race detector, and what needs PostgreSQL,'
	@echo 'Redis, npm or Python packages, a browser, user namespaces or the models of tests. make test runs everything.'

# The tests of processes run twice: shims are part of the test's executable, with the race detector, and then the program
# that releases contain.
test-race: ## run all tests except PLAIN (see the Makefile) with the race detector, and those of bench (part of make test)
	$(go) test -C bench $(RACE) -timeout 5m $(TESTFLAGS) ./... && bench=0 || bench=1; \
	$(go) test $(RACE) -timeout 30m $(TESTFLAGS) -p 3 $$($(go) list ./test/... ./core/store ./... | awk '!seen[$$0]++' | grep -vxF "$$($(go) list $(PLAIN))") && race=0 || race=1; \
	GO='$(go)' deploy/shim && $(PLAINTEST) -tags shim -timeout 15m ./core/process && exit $$((bench | race))

test-plain: ## run the tests of other programs, of commands and of packages (part of make test)
	$(PLAINTEST) -timeout 30m $(PLAIN)

test-postgres: ## run the tests that exercise PostgreSQL (part of make test)
	ROPEWALK_TEST_STORE=postgres $(PLAINTEST) -timeout 10m $(STORING)

test-rust: ## run the tests of the example plugin in Rust (two minutes of compiling; installs Rust if necessary)
	@test/install-deps rust
	ROPEWALK_TEST_RUST=1 $(PLAINTEST) -timeout 15m -run Rust ./test/examples

test-java: ## run the kits on the Java plugins that plugin init writes, for the kinds that make test leaves out (five minutes)
	@test/install-deps
	ROPEWALK_TEST_JAVA=1 $(PLAINTEST) -timeout 30m -run InJava ./test/examples

test-keycloak: ## link an account at Keycloak, renew its tokens and revoke them (three minutes; downloads 160 MB once)
	@test/install-deps
	ROPEWALK_TEST_KEYCLOAK=1 $(PLAINTEST) -timeout 15m -run Keycloak ./test/e2e/accounts

test-deps: ## install what the tests need, or list what is missing
	@test/install-deps

servers: build ## install 57 npm and PyPI servers and the files in test/pasted as a newcomer would, and check each one (an hour; ONLY=regex: only matching ones; AS=uid: as that user, with node and uv in its home; CONTAINER=1: with a container's restrictions)
	$(if $(CONTAINER),test/servers/container.sh,node test/servers/run.mjs) bin/ropewalk $(if $(ONLY),--only '$(ONLY)') $(if $(filter-out as,$(AS)),--user $(AS))

conformance: ## run the official MCP conformance suite against /mcp (part of make test)
	$(go) test -count=1 -timeout 15m -v ./test/conformance

tasks: ## kill -9 the server during a task, with SQLite and as one of two servers on PostgreSQL (tasks of 60 seconds, or SECONDS=n; make test uses 5)
	$(PLAINTEST) -count=1 -timeout 15m -v -run '^TestATaskSurvives|^TestATaskOfARemoteAppSurvives' ./test/e2e/mcp ./test/e2e/cluster -task-seconds $(or $(SECONDS),60)

schemathesis: ## search all /v1 operations for responses that the OpenAPI document does not describe (4 minutes; make test only tries boundary values)
	$(go) test -count=1 -timeout 6m -v -run Schemathesis ./test/clients -schemathesis 200s

check: ## check vet, lint, words, links, known vulnerabilities, the fuzzing corpus, a build for macOS, wire compatibility, generated code, and the console with ESLint, Prettier and Vitest
	$(go) vet ./...
	$(go) vet -C bench ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(go) build -trimpath ./cmd/... ./core/... ./plugins/...
	@test/words
	@test/links
	@$(PLAINTEST) -run '^Fuzz' $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')
	$(LINT) run --allow-parallel-runners ./...
	cd bench && $(LINT) run --allow-parallel-runners ./...
	$(go) test -C tools/helm ./...
	$(BUF) lint
	$(BUF) breaking --against proto/ropewalk.binpb
	@$(MAKE) --no-print-directory generate
	@$(MAKE) --no-print-directory web
	@test -z "$$(git status --porcelain -- core/console/dist)" || { echo 'the built console is not up to date: commit what make web wrote'; exit 1; }
	@cd web && npm run check
	@git diff --exit-code -- proto || { echo 'generated code is not up to date: commit what make generate wrote'; exit 1; }
	@$(MAKE) --no-print-directory vulnerabilities

vulnerabilities: ## look for known vulnerabilities in the code that Ropewalk calls (part of make check; VULNDB=latest for the newest database)
	@db=$$($(go) mod download -json golang.org/x/vulndb@$(VULNDB) | sed -n 's/^\t"Dir": "\(.*\)",*$$/\1/p') && test -n "$$db" && \
		$(go) tool -modfile=tools/govulncheck/go.mod govulncheck -db "file://$$db/data/osv" ./...

generate: ## regenerate the Go code in proto/ (needs no network)
	@$(BUF) generate

web: ## rebuild the console from web (needs Node 20 and npm; go build needs neither)
	@cd web && npm ci --no-audit --no-fund && npm run build

bench: build ## measure every promised figure against other servers, in one run (half an hour; QUICK=1: five minutes; ONLY=chat,calls: only those parts; AGAINST=path: also compare with that build)
	@$(go) build -C bench -trimpath -ldflags '-s -w' -o ../$(BIN)/ropewalk-bench .
	@$(BIN)/ropewalk-bench table --service $(BIN)/ropewalk $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(AGAINST),--against $(AGAINST))

microbench: ## run benchmarks of single packages: ratios of two things measured in one run
	$(go) test -run '^$$' -bench . -benchmem ./core/... ./plugins/...

chaos: test-deps ## check every row of docs/security.md with the full counts, and print one table (an hour at most; ONLY="7 8": only those rows)
	@GO='$(go)' deploy/shim
	@$(go) run ./internal/chaos/table $(ONLY)

fuzz: ## execute every fuzz target 50,000 times (three minutes; part of make chaos)
	@$(go) run ./internal/chaos/table 36

dist: ## build static, reproducible archives for Linux and macOS, deb and rpm, bills of materials, checksums, the Homebrew formula
	@GO='$(go)' deploy/dist

release: ## check that the last commit can be released, and print the commands for the maintainer (VERSION=v0.1.0)
	@deploy/release '$(VERSION)'

reproducible: ## build the last commit's release twice, from different folders, and compare the bytes
	@test/reproducible $(PLATFORMS)

boot: ## boot the deb's systemd unit in a virtual machine, with the cgroup tests (root, qemu, debootstrap; 10 minutes; SUITE=bookworm: another Debian)
	@GO='$(go)' test/unit/boot

clean: ## remove build results
	@rm -rf $(BIN) dist
