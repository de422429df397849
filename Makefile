# Go, git, make and a C compiler (for the race detector) are all it takes. What
# make test-all adds also uses node, awscli and others, where there are any.

GO       ?= go
FUZZTIME ?= 10s
LINT      = $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Packages that drive the built server. The race detector sees nothing of
# another process, and only slows the driver down.
DRIVERS   = ./test/... ./examples/...

# make drive runs several of them at once: each waits more than it works.
AT_ONCE  ?= 4
PACKAGES  = ./cmd/... ./internal/...

# Modules of their own, so that Godwit needs nothing of what they need.
MODULES   = ./examples/durable-job ./test/clients ./test/console ./tools/console

# Packages whose tests are smaller under the race detector, with which Pebble checks
# itself at great length: make test runs them small, and make full at full size.
FULL      = ./internal/shard/... ./internal/deliver ./internal/server

# Packages whose tests hardly have goroutines, and much to do: make test runs them at full
# size, and make full under the race detector.
VOLUME    = /internal/(store/pebble|cluster/replica)$$

# The tests in files that import a package of test/, and their packages.
tests-of = -run "^($$(grep -rl --include='*_test.go' 'test/$(1)"' cmd internal test examples | \
	xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*/\1/p' | paste -sd'|' -))$$" \
	$$(grep -rl --include='*_test.go' 'test/$(1)"' cmd internal test examples | xargs -n1 dirname | sort -u | sed 's,^,./,')

# Tests gain nothing by the profile that the compiler goes by (cmd/godwit/default.pgo), which
# would have every package compiled once more, and nothing by DWARF, which is half of a link.
vet lint unit drive full programs soak fuzz: export GOFLAGS := $(GOFLAGS) -pgo=off -ldflags=-w

.PHONY: all build run test test-all vet lint format unit drive full programs soak bench pgo fuzz clean

all: build

build: ## bin/godwit
	$(GO) build -trimpath -o bin/godwit ./cmd/godwit

run:
	$(GO) run ./cmd/godwit

test: lint unit drive ## what Go alone runs: in minutes, before every change

test-all: test full programs ## everything that must pass before a change lands

vet:
	$(GO) vet ./...
	@for m in $(MODULES); do echo "$(GO) vet $$m/..."; (cd "$$m" && $(GO) vet ./...) || exit 1; done

lint: ## rings, time, style: .golangci.yml
	$(LINT) run ./...
	@for m in $(MODULES); do echo "golangci-lint run $$m/..."; (cd "$$m" && $(LINT) run ./...) || exit 1; done

format: ## what the linter can mend by itself
	$(LINT) fmt ./...
	$(LINT) run --fix ./...
	@for m in $(MODULES); do (cd "$$m" && $(LINT) run --fix ./...) || exit 1; done

# Ring 1 has no goroutines for the race detector to watch, nor have these of ring 0.
PURE      = /internal/(alarm|arn|config|fastjson|fault|function|iam|key|kms|mutation|packed|platform|policy|publicnet|queue|sms|sorted|stream|topic)(/|$$)

unit: # the linter has vetted all of it
	$(GO) test -vet=off -timeout 8m $$($(GO) list $(PACKAGES) | grep -E '$(PURE)|$(VOLUME)')
	$(GO) test -race -vet=off -timeout 8m $$($(GO) list $(PACKAGES) | grep -vE '$(PURE)|$(VOLUME)')

# The server that tests drive is in a directory that is called by what is in the binary:
# so go test sees whether a result in its cache is of the same server.
drive:
	@mkdir -p bin/test && $(GO) build -buildvcs=false -o bin/test/godwit ./cmd/godwit
	@built="$(CURDIR)/bin/test/$$($(GO) tool buildid bin/test/godwit | sed 's,.*/,,')"; \
	[ -e "$$built" ] || { rm -rf bin/test/*/; mkdir "$$built"; cp bin/test/godwit "$$built"; }; \
	export GODWIT_BINARY="$$built/godwit"; \
	echo "GODWIT_BINARY=$$GODWIT_BINARY $(GO) test -p $(AT_ONCE) -vet=off -timeout 8m $(DRIVERS)"; \
	$(GO) test -p $(AT_ONCE) -vet=off -timeout 8m $(DRIVERS) || exit 1; \
	for m in $(MODULES); do echo "cd $$m && $(GO) test -vet=off -timeout 8m ."; (cd "$$m" && $(GO) test -vet=off -timeout 8m .) || exit 1; done

# GODWIT_SOAK_TIME (1m) is how long each campaign goes on, and SOAKFLAGS may be
# -race, or -run of some.
SOAKFLAGS ?=

full: ## what make test has at one size, or with the race detector, at or with the other
	$(GO) test -count=1 -timeout 10m $(FULL)
	$(GO) test -race -count=1 -timeout 10m $$($(GO) list $(PACKAGES) | grep -E '$(VOLUME)')

programs: ## what needs programs that are not Go's; the end names what was skipped
	@mkdir -p bin; rm -f bin/skipped; touch bin/skipped
	GODWIT_PROGRAMS=1 GODWIT_SKIPPED=$(CURDIR)/bin/skipped $(GO) test -count=1 -timeout 8m $(call tests-of,programs)
	cd test/clients && GODWIT_PROGRAMS=1 $(GO) test -count=1 -timeout 15m
	cd test/console && GODWIT_PROGRAMS=1 $(GO) test -count=1 -timeout 8m
	@sed 's/^/SKIPPED /' bin/skipped

soak: ## the long form of tests and fuzzers, GODWIT_SOAK_TIME each; seeds are printed
	GODWIT_SOAK=1 $(GO) test -v -count=1 -p 1 -timeout 24h $(call tests-of,soak) $(SOAKFLAGS)
	$(MAKE) fuzz FUZZTIME=$${GODWIT_SOAK_TIME:-1m}

bench: build ## the table of docs/performance.md
	$(GO) run ./test/bench -server bin/godwit $(BENCHFLAGS)

pgo: build ## measure anew what the compiler goes by
	rm -rf bin/pgo
	$(GO) run ./test/bench -server bin/godwit -reference none -rounds 1 -only send,cycle,fanout,http,poll,fifo,functions -profile bin/pgo
	$(GO) tool pprof -proto $$(ls bin/pgo/*.pprof | grep -v allocs) > cmd/godwit/default.pgo

fuzz: ## every fuzz test for FUZZTIME
	@$(GO) list -f '{{.Dir}} {{.ImportPath}}' $(PACKAGES) | while read -r dir pkg; do \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go 2>/dev/null | cut -c6-); do \
			echo "$$pkg $$f"; \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || exit 1; \
		done; \
	done

clean:
	rm -rf bin
