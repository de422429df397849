# Go, git, make and a C compiler (for the race detector) are all it takes. The
# tests of clients that are not Go's also use node and awscli where they can.

GO       ?= go
FUZZTIME ?= 10s
LINT      = $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Packages that drive the built binary. The race detector sees nothing of
# another process, and only slows the driver down.
DRIVERS   = ./test/... ./examples/...
PACKAGES  = ./cmd/... ./internal/...

# Modules of their own, so that Godwit needs nothing of what they need.
MODULES   = ./examples/durable-job ./test/clients

.PHONY: all build run test vet lint format unit drive bench fuzz clean

all: build

build: ## bin/godwit
	$(GO) build -trimpath -o bin/godwit ./cmd/godwit

run:
	$(GO) run ./cmd/godwit

test: vet lint unit drive ## everything that must pass before a change lands

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

unit:
	$(GO) test -race -timeout 8m $(PACKAGES)

drive: # -count=1, since go test does not see that a result in its cache is of another server
	@for p in $(DRIVERS); do \
		if [ -d "$${p%/...}" ]; then echo "$(GO) test -count=1 -timeout 8m $$p"; $(GO) test -count=1 -timeout 8m "$$p" || exit 1; fi; \
	done
	@# Without a package, go test prints what passing tests say: which clients were skipped.
	@for m in $(MODULES); do \
		echo "cd $$m && $(GO) test -count=1 -timeout 8m"; (cd "$$m" && $(GO) test -count=1 -timeout 8m) || exit 1; \
	done

bench: build ## the table of docs/performance.md
	$(GO) run ./test/bench -server bin/godwit $(BENCHFLAGS)

fuzz: ## every fuzz test for FUZZTIME
	@$(GO) list -f '{{.Dir}} {{.ImportPath}}' $(PACKAGES) | while read -r dir pkg; do \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go 2>/dev/null | cut -c6-); do \
			echo "$$pkg $$f"; \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || exit 1; \
		done; \
	done

clean:
	rm -rf bin
