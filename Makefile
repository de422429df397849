# Go, git, make and a C compiler (for the race detector) are all it takes.

GO       ?= go
FUZZTIME ?= 10s
LINT      = $(GO) tool -modfile=tools/go.mod golangci-lint

# Packages that drive the built binary. The race detector sees nothing of
# another process, and only slows the driver down.
DRIVERS   = ./test/... ./examples/...
PACKAGES  = ./cmd/... ./internal/...

.PHONY: all build run test vet lint format unit drive bench fuzz clean

all: build

build: ## bin/godwit
	$(GO) build -trimpath -o bin/godwit ./cmd/godwit

run:
	$(GO) run ./cmd/godwit

test: vet lint unit drive ## everything that must pass before a change lands

vet:
	$(GO) vet ./...

lint: ## rings, time, style: .golangci.yml
	$(LINT) run ./...

format: ## what the linter can mend by itself
	$(LINT) fmt ./...
	$(LINT) run --fix ./...

unit:
	$(GO) test -race -timeout 8m $(PACKAGES)

drive:
	@for p in $(DRIVERS); do \
		if [ -d "$${p%/...}" ]; then echo "$(GO) test -timeout 8m $$p"; $(GO) test -timeout 8m "$$p" || exit 1; fi; \
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
