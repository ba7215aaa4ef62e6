# Ropewalk: what a contributor types. `make run` and `make test` are all that a newcomer needs.

GO ?= go

# $(go) is the go command of every recipe. The first recipe that runs it chooses the toolchain for all, and downloads
# it where that is needed: make help and make clean do not. A make below this one has the choice in its environment.
go = $(if $(filter 0,$(MAKELEVEL)),$(eval export GOTOOLCHAIN := $(or $(shell GO='$(GO)' test/toolchain),$(error there is no Go to build with))))$(eval go := $$(GO))$(go)

# What test/install-deps installs for this repository alone: uv and, on older systems, Node.
export PATH := $(CURDIR)/.cache/tools/bin:$(PATH)

BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse HEAD 2>/dev/null) -X main.date=$(shell git log -1 --format=%cI 2>/dev/null)
BUF      = $(go) tool -modfile=tools/buf/go.mod buf
LINT     = $(go) tool -modfile=$(CURDIR)/tools/golangci-lint/go.mod golangci-lint

# The database of known vulnerabilities that make check looks into. It is named by its version, so that one commit has
# one result; .github/workflows/vulnerabilities.yaml looks into the newest one each week.
VULNDB  ?= v0.0.0-20261105234957-e22db6528018

.PHONY: run build plugins test test-deps test-race test-others test-plain test-postgres conformance schemathesis check vulnerabilities lint generate web bench microbench chaos fuzz dist reproducible boot clean help

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

run: build ## build and start the server with the sample app running (PORT=8080 for another port)
	@exec $(BIN)/ropewalk serve --sample $(if $(PORT),--port $(PORT))

build: ## build bin/ropewalk
	@CGO_ENABLED=0 $(go) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ropewalk ./cmd/ropewalk

plugins: ## build every built-in adapter as a plugin binary of its own
	@for d in $(foreach kind,$(notdir $(wildcard proto/ropewalk/*)),$(wildcard cmd/$(kind)-*)); do \
		CGO_ENABLED=0 $(go) build -trimpath -ldflags '-s -w' -o $(BIN)/plugins/$$(basename $$d) ./$$d || exit 1; done

# How go test runs here: without vet, which make check runs on everything; without debugging
# information in the test executables, which nothing reads and the linker takes long to write.
TESTFLAGS := -vet=off -ldflags='-s -w'

# The race detector watches everything but SQLite, which is C translated to Go: its memory is its own,
# not that of Go values, and watching each of its accesses took most of the time of what stores anything.
# internal/testenv builds the servers under test with the same flags.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false

# A process with the race detector waits a second before it exits, which is a minute for the packages
# and longer for the servers and plugins that they start.
test test-race: export GORACE ?= atexit_sleep_ms=0

# What is about programs that are not built here (browsers, compilers, package managers, clients, kits of
# plugins in other languages) or about commands that each end soon: the race detector would watch little
# there that it does not watch in the packages of the same code, and every server that such a test starts
# would be three times slower. So are the tests of several servers, which share a database and no memory,
# and those that give hundreds of wrong plugins to the kits; the adapters, which pass the same kits, are
# watched while they do.
PLAIN := ./test/console ./cmd/ropewalk ./test/examples ./test/e2e/cluster ./plugins/auth/authtest ./test/clients \
	./test/conformance ./test/e2e/install ./test/e2e/operations \
	./plugins/audit/audittest ./plugins/protocoltest ./plugins/registry/registrytest ./plugins/sessionstore/sessionstoretest

# What meets PostgreSQL in another way than a file: people, conversations and runs, the start and the
# end of a server, installed apps, and what the API answers and announces of them. Not here are
# core/store and core/store/cluster, which test both databases in one run; test/e2e/cluster, whose
# servers always share a PostgreSQL; test/e2e/plugins and test/e2e/mcp, whose sessions live in plugins;
# what is in PLAIN, which is about packages, commands and protocols and keeps nothing that the packages
# below do not keep too.
STORING := ./core/access ./core/chat ./core/server ./test/e2e/accounts ./test/e2e/api ./test/e2e/apps ./test/e2e/chat ./test/e2e/login

# Without the race detector, tests are compiled as make build compiles the server, so that nothing is
# compiled for them alone but the tests.
PLAINTEST = CGO_ENABLED=0 $(go) test -trimpath $(TESTFLAGS) -p 2

# Two lanes run side by side, one with the race detector and one without: together five packages at a time,
# because tests of processes, browsers and lifetimes mostly wait, and with fewer of them two processors were
# idle a quarter of the time. A lane goes on when the other fails. The packages that take longest come first,
# so that the last ones to end are short. What the servers under test are made of is compiled before, or
# several packages would compile it at the same time.
test: test-deps ## install what the tests need, run all (with the race detector where it sees something), then on PostgreSQL
	@$(go) build $(RACE) ./core/server
	@$(MAKE) --no-print-directory --keep-going --jobs=2 test-race test-others

# Lane two. The second part runs also when the first fails, so that one run shows all failures.
test-others:
	@$(MAKE) --no-print-directory test-plain && plain=0 || plain=1; $(MAKE) --no-print-directory test-postgres && exit $$plain

test-race: ## the tests with the race detector, and those of bench: all but those of PLAIN in the Makefile (part of make test)
	$(go) test -C bench $(RACE) -timeout 5m $(TESTFLAGS) ./... && bench=0 || bench=1; \
	$(go) test $(RACE) -timeout 20m $(TESTFLAGS) -p 3 $$($(go) list ./test/... ./core/store ./... | awk '!seen[$$0]++' | grep -vxF "$$($(go) list $(PLAIN))") && exit $$bench

test-plain: ## the tests of other programs, of commands and of packages (part of make test)
	$(PLAINTEST) -timeout 20m $(PLAIN)

test-postgres: ## the tests that meet PostgreSQL in their own way (part of make test)
	ROPEWALK_TEST_STORE=postgres $(PLAINTEST) -timeout 10m $(STORING)

test-rust: ## the tests of the example plugin in Rust (two minutes of compiling; installs Rust when there is none)
	@test/install-deps rust
	ROPEWALK_TEST_RUST=1 $(PLAINTEST) -timeout 15m -run Rust ./test/examples

test-deps: ## install what the tests need, or list what is missing
	@test/install-deps

conformance: ## the official MCP conformance suite, against /mcp (part of make test)
	$(go) test -count=1 -timeout 15m -v ./test/conformance

schemathesis: ## search all operations of /v1 for answers that the document does not describe (4 minutes; make test tries the boundaries only)
	$(go) test -count=1 -timeout 6m -v -run Schemathesis ./test/clients -schemathesis 200s

check: ## vet, lint, words, links, known vulnerabilities, what fuzzing begins with, a build for macOS, wire compatibility, generated code up to date
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
	@git diff --exit-code -- proto || { echo 'generated code is not up to date: commit what make generate wrote'; exit 1; }
	@$(MAKE) --no-print-directory vulnerabilities

vulnerabilities: ## known vulnerabilities of the code that is called (part of make check; VULNDB=latest for the newest database)
	@db=$$($(go) mod download -json golang.org/x/vulndb@$(VULNDB) | sed -n 's/^\t"Dir": "\(.*\)",*$$/\1/p') && test -n "$$db" && \
		$(go) tool -modfile=tools/govulncheck/go.mod govulncheck -db "file://$$db/data/osv" ./...

generate: ## write the Go of proto/ anew (no network needed)
	@$(BUF) generate

web: ## build the console anew from web (Node 20 and npm; go build needs neither)
	@cd web && npm ci --no-audit --no-fund && npm run build

bench: build ## measure every promised figure against other servers, in one run (15 minutes; QUICK=1: three; ONLY=chat,calls: those parts; AGAINST=path: compare with that build too)
	@$(go) build -C bench -trimpath -ldflags '-s -w' -o ../$(BIN)/ropewalk-bench .
	@$(BIN)/ropewalk-bench table --service $(BIN)/ropewalk $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(AGAINST),--against $(AGAINST))

microbench: ## benchmarks of single packages: ratios of two things measured in one run
	$(go) test -run '^$$' -bench . -benchmem ./core/... ./plugins/...

chaos: test-deps ## one table of what holds: every row of docs/security.md, with the full counts (an hour at most; ONLY="7 8": those rows)
	@$(go) run ./internal/chaos/table $(ONLY)

fuzz: ## 50,000 executions of every fuzz target (three minutes; part of make chaos)
	@$(go) run ./internal/chaos/table 36

dist: ## static, reproducible archives for Linux and macOS, deb and rpm, bills of materials, checksums, the Homebrew formula
	@GO='$(go)' deploy/dist

reproducible: ## build the release of the last commit twice, from different folders, and compare the bytes
	@test/reproducible $(PLATFORMS)

boot: ## boot the systemd unit of the deb in a virtual machine, with the tests of cgroups (root, qemu, debootstrap; 10 minutes; SUITE=bookworm: another Debian)
	@GO='$(go)' test/unit/boot

clean: ## remove what was built
	@rm -rf $(BIN) dist
