# Retrial. `make help` lists the targets; continuous integration calls the same ones.
SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GO ?= go
BIN := bin/retrial
DATA ?= data
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F':.*## ' '/^[a-z][a-zA-Z0-9_-]*:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Check the machine, build, and serve on the embedded engines with a sample log (ARGS: further flags)
	@scripts/check-machine.sh run
	@$(MAKE) --no-print-directory build
	@scripts/fetch-libchdb.sh
	@exec $(BIN) serve --data-dir $(DATA) --sample $(ARGS)

.PHONY: build
build: ## Build bin/retrial, and bin/retrial-bench beside it
	@mkdir -p bin
	$(GO) build -trimpath -ldflags "-s -w -X github.com/retrial-io/retrial/internal/version.Version=$(VERSION)" -o $(dir $(BIN)) ./cmd/retrial ./cmd/retrial-bench

.PHONY: web
web: dashboards/web/node_modules/.package-lock.json ## Build the pages (dashboards/web into dashboards/ui/dist, which is committed)
	@npm --prefix dashboards/web run --silent generate
	@npm --prefix dashboards/web run --silent build

dashboards/web/node_modules/.package-lock.json: dashboards/web/package-lock.json
	@npm --prefix dashboards/web ci --silent
	@touch $@

.PHONY: man
man: ## Write the manual pages into bin/man (man -l bin/man/retrial-why.1)
	@$(GO) run ./cmd/retrial man bin/man && ls bin/man | wc -l

.PHONY: package
package: ## Make the archives of a release in dist, with manual pages and kubectl's completion (VERSION)
	@VERSION=$(VERSION) scripts/package.sh

.PHONY: test
test: ## Set up what the tests need and run every test
	@scripts/check-machine.sh test
	@scripts/fetch-libchdb.sh
	@scripts/test.sh

.PHONY: test-apiserver
test-apiserver: ## Build a real kube-apiserver and etcd from their Go modules and test against them (8 minutes the first time)
	@scripts/check-machine.sh test
	@scripts/test-apiserver.sh

.PHONY: test-e2e
test-e2e: ## Run a Kubernetes with nodes and controllers for MINUTES (5); Retrial must reach the same decision on all of it (RELEASE=1.36, SEED=1, EVERY: seconds between namespaces)
	@scripts/check-machine.sh test
	@RELEASE=$(or $(RELEASE),1.36) MINUTES=$(or $(MINUTES),5) SEED=$(or $(SEED),1) EVERY=$(or $(EVERY),0) scripts/test-e2e.sh

.PHONY: test-kafka
test-kafka: ## Test the stream, the whole pipeline and scaled-out processes on real Kafka 3.9 and 4.1, plain and with SASL_SSL (15 minutes)
	@scripts/check-machine.sh test
	@scripts/test-kafka.sh

.PHONY: bench-kafka
bench-kafka: build ## Measure the whole pipeline on a real Kafka 4.1 on this machine (PARTITIONS, ARGS: further flags of serve)
	@scripts/fetch-libchdb.sh
	@scripts/fetch-kafka.sh
	@$(GO) run ./test/kafkatest/withkafka -heap 1024 $(BIN) bench pipeline --repeat 4 -- {} --kafka-replication 1 --kafka-partitions $(or $(PARTITIONS),4) $(ARGS)

.PHONY: test-outage
test-outage: ## Post 3.6 million events, a quarter of an hour's at an apiserver's most, to a receiver without Kafka (minutes; RATE events/s)
	@scripts/fetch-kafka.sh
	@RETRIAL_OUTAGE_EVENTS=3600000 RETRIAL_OUTAGE_RATE=$(or $(RATE),0) RETRIAL_REQUIRE_ALL=1 $(GO) test -count=1 -timeout 60m -v -run 'TestOutage$$' ./cmd/retrial

.PHONY: test-upgrade
test-upgrade: ## Upgrade a store from every version there has been (minutes; make test takes some of them)
	@scripts/fetch-libchdb.sh
	@RETRIAL_LONG=1 RETRIAL_REQUIRE_ALL=1 $(GO) test -count=1 -timeout 60m -v -run 'TestUpgradeFromEveryVersion$$' ./storage

.PHONY: test-starved
test-starved: ## Stop a server for a minute, starve it for another, and see how late its findings are (5 minutes)
	@scripts/fetch-libchdb.sh
	@RETRIAL_LONG=1 $(GO) test -count=1 -timeout 30m -v -run 'TestStarvedProcess$$' ./cmd/retrial

.PHONY: neighbour
neighbour: ## Measure how long answers take beside a cluster that writes policies with long lists (minutes; ROUNDS)
	@scripts/fetch-libchdb.sh
	@RETRIAL_NEIGHBOUR_ROUNDS=$(or $(ROUNDS),100) $(GO) test -count=1 -timeout 60m -v -run 'TestNeighbour$$' ./cmd/retrial

.PHONY: record
record: ## Record the control planes of replay/testdata/recordings again (3 minutes)
	@scripts/check-machine.sh test
	@scripts/record.sh

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, deadcode; golangci-lint and govulncheck where available
	@scripts/lint.sh

.PHONY: faults
faults: ## Run a thousand schedules of faults, real processes and mutants (an hour of processor time; SEED, N)
	@SEED=$(SEED) N=$(N) scripts/faults.sh

.PHONY: whatif
whatif: ## Compare what-if with replaying every event of the sample for 500 generated drafts (minutes; WHATIF_N)
	@WHATIF_N=$(or $(WHATIF_N),500) $(GO) test -count=1 -timeout 60m -v -run 'TestReplay$$' ./analysis/whatif

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@scripts/fuzz.sh $(or $(FUZZTIME),30s)

.PHONY: bench
bench: build ## Measure decode, authorize, replay and the whole pipeline; see docs/bench.md
	@scripts/fetch-libchdb.sh
	@scripts/bench.sh

.PHONY: bench-storage
bench-storage: build ## Measure bytes per event of 5 million generated events, beside zstd and OpenTelemetry's table; see docs/storage.md (minutes; ARGS: further flags)
	@scripts/fetch-libchdb.sh
	@$(BIN) bench storage --rows $(or $(ROWS),5000000) --seed 1 $(ARGS)

.PHONY: bench-idle
bench-idle: build ## Measure what an idle server takes of a core: at most 1 % (4 minutes)
	@scripts/fetch-libchdb.sh
	@scripts/bench-idle.sh $(BIN)

.PHONY: bench-peers
bench-peers: ## Measure VictoriaLogs and an OpenTelemetry Collector, built from their modules, beside the pipeline; see docs/peer.md (an hour; N rounds, EVENTS, STATE, ARGS)
	@scripts/bench-peers.sh $(ARGS)

.PHONY: bench-rbac
bench-rbac: ## Measure rbacindex beside Kubernetes' own RBAC authorizer; see docs/bench.md
	@scripts/bench-rbac.sh

.PHONY: shapes
shapes: ## Judge under 10,000 generated policies of every shape, up to 8 MB each (hours; SHAPES, SHAPES_SEED, SHAPES_BYTES)
	@SHAPES=$(or $(SHAPES),10000) SHAPES_BYTES=$(or $(SHAPES_BYTES),8388608) $(GO) test -count=1 -timeout 24h -v -run 'TestPolicyShapes$$' ./replay/evaluate

.PHONY: oracle
oracle: ## Ask the index and Kubernetes' own RBAC code ten million generated questions (minutes; ORACLE_N, ORACLE_SEED)
	@$(GO) -C rbacindex/oracle run ./cmd/oracle

.PHONY: oracle-policies
oracle-policies: ## Compare who-can, hygiene and nearest misses with Kubernetes' authorizer on 100,000 generated policies (minutes)
	@ORACLE_POLICIES=$(or $(ORACLE_POLICIES),100000) $(GO) -C rbacindex/oracle test -count=1 -timeout 60m -v -run 'TestPolicies$$' ./compare

.PHONY: oracle-requests
oracle-requests: ## Compare RequestInfo with Kubernetes' on a million generated request targets
	@ORACLE_REQUESTS=$(or $(ORACLE_REQUESTS),1000000) $(GO) -C rbacindex/oracle test -count=1 -v -run 'TestRequestInfo$$' ./requestinfo

.PHONY: oracle-node
oracle-node: ## Compare the node authorizer with Kubernetes' on a million generated requests, and as many through the replica's state (minutes)
	@ORACLE_NODE=$(or $(ORACLE_NODE),1000000) $(GO) -C rbacindex/oracle test -count=1 -timeout 60m -v -run 'Test(Node|State)$$' ./node

.PHONY: oracle-state
oracle-state: ## Compare the state with Kubernetes' own registry on 100,000 random sequences of writes (minutes; ORACLE_STATE, ORACLE_SEED)
	@ORACLE_STATE=$(or $(ORACLE_STATE),100000) $(GO) -C test/apiserver test -count=1 -timeout 120m -v -run 'TestState$$' ./registry

.PHONY: bench-node
bench-node: ## Measure the graph of nodes beside Kubernetes' own at 100,000 volumes; see docs/bench.md
	@$(GO) -C rbacindex/oracle run ./node/bench

.PHONY: oracle-authorizers
oracle-authorizers: ## Compare ABAC and the union of authorizers with Kubernetes' on a million generated requests, webhooks included (minutes)
	@ORACLE_ABAC=$(or $(ORACLE_ABAC),1000000) ORACLE_UNION=$(or $(ORACLE_UNION),1000000) $(GO) -C rbacindex/oracle test -count=1 -timeout 60m -v -run 'Test(ABAC|Union)$$' ./abac ./union

.PHONY: oracle-admission
oracle-admission: ## Compare admission plugins that are evaluated again with Kubernetes' on 100,000 generated objects each (minutes)
	@ORACLE_ADMISSION=$(or $(ORACLE_ADMISSION),100000) $(GO) -C rbacindex/oracle test -count=1 -timeout 60m -v ./admission

.PHONY: oracle-impersonation
oracle-impersonation: ## Compare impersonation with Kubernetes' filters a million times, and as many writes of roles and bindings with its storages (minutes)
	@ORACLE_IMPERSONATIONS=$(or $(ORACLE_IMPERSONATIONS),150000) ORACLE_ESCALATIONS=$(or $(ORACLE_ESCALATIONS),1000000) $(GO) -C rbacindex/oracle test -count=1 -timeout 60m -v -run 'Test(Filters|Storages)$$' ./impersonation ./escalation

.PHONY: oracle-corpus
oracle-corpus: ## Write the cases that the index's own tests read, with Kubernetes' answers
	@ORACLE_N=150000 $(GO) -C rbacindex/oracle run ./cmd/oracle -corpus ../testdata/corpus

.PHONY: releases
releases: ## Generate the tables of replay/release from the sources of each Kubernetes release (RELEASE: one, such as 1.38)
	@$(GO) -C rbacindex/oracle run ./releases tables $(RELEASE)

.PHONY: oracle-versions
oracle-versions: ## Compare the replica with each release's own authorizers, one at a time (8 minutes each the first time; RELEASE: one)
	@$(GO) -C rbacindex/oracle run ./releases cases
	@$(GO) -C rbacindex/oracle run ./releases answers $(RELEASE)
	@$(GO) test -count=1 -v -run 'TestReleases' ./replay/authz

.PHONY: golden
golden: ## Rewrite generated documents and golden files; read the diff before committing
	$(GO) test ./analysis/leastpriv ./cmd/retrial ./query/api ./server ./storage ./storage/schema ./replay/release -run 'Golden|Docs|ColumnsAreDocumented' -update

.PHONY: screenshots
screenshots: ## Take the pictures of the README (docs/img), and those that tests compare the pages with
	@scripts/fetch-libchdb.sh
	@RETRIAL_IMAGES=$(CURDIR)/docs/img RETRIAL_KEEP_PAGES=1 RETRIAL_REQUIRE_ALL=1 $(GO) test -count=1 -timeout 30m -run 'TestWeb(Empty)?$$' ./cmd/retrial

.PHONY: clean
clean: ## Remove what was built (not ./data)
	rm -rf bin
