# Go, git, make and a C compiler (for the race detector) are all it takes. What
# make test-all adds also uses node, awscli and others, where there are any.

GO       ?= go
FUZZTIME ?= 10s
LINT      = $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Packages that drive the built server. The race detector sees nothing of
# another process, and only slows the driver down.
DRIVERS   = ./test/... ./examples/...

# So many packages at once: each waits more than it works.
AT_ONCE  ?= 4
PACKAGES  = ./cmd/... ./internal/...

# Those that take longest begin first, and so do not go on alone behind the others.
LONG      = ./internal/cluster/jetstream ./internal/invoke/process ./internal/deliver ./internal/shard/... ./internal/certs/acme
DRIVE     = ./test/e2e ./test/sdk ./examples/rental-orders ./test/operator

# Modules of their own, so that Godwit needs nothing of what they need.
MODULES   = ./examples/containers ./examples/durable-job ./test/clients ./test/console ./test/deployed ./testcontainers ./tools/console

# Packages whose tests make test runs small (soak.Size), and make full at full size.
FULL      = ./internal/shard/... ./internal/deliver ./internal/server/... ./internal/store/... ./internal/cluster/replica \
	./internal/api/operator/jobs ./internal/monitor/logs ./test/bench ./test/sim

# The tests in files that import a package of test/, and their packages.
tests-of = -run "^($$(grep -rl --include='*_test.go' 'test/$(1)"' cmd internal test examples | \
	xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*/\1/p' | paste -sd'|' -))$$" \
	$$(grep -rl --include='*_test.go' 'test/$(1)"' cmd internal test examples | xargs -n1 dirname | sort -u | sed 's,^,./,')

# Tests gain nothing by the profile that the compiler goes by (cmd/godwit/default.pgo), which
# would have every package compiled once more, and nothing by DWARF, which is half of a link.
# Without paths in them, all clones and worktrees of a machine share what was compiled.
vet linted linted-modules raced unraced server driven modules full programs soak fuzz reference: export GOFLAGS := $(GOFLAGS) -trimpath -pgo=off -ldflags=-w

# Without the race detector all is built as releases are, without C: Pebble's would have each
# test linked by the C compiler, too.
vet linted linted-modules format unraced server driven modules fuzz reference: export CGO_ENABLED := 0

# The certificates that this machine trusts, wherever it has them.
TRUSTED  ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))

.PHONY: all build image-files release run test test-all vet lint linted linted-modules format unit raced unraced server drive driven modules full programs pictures soak bench pgo fuzz clean

all: build

build: ## bin/godwit
	$(GO) build -trimpath -o bin/godwit ./cmd/godwit

image-files: ## bin/image, of which docker build makes an image
	mkdir -p bin/image/data
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/image/godwit ./cmd/godwit
	cp $(TRUSTED) bin/image/ca-certificates.crt
	cp deploy/Dockerfile deploy/Dockerfile.functions bin/image/

bin/tools/goreleaser: tools/goreleaser/go.mod
	cd tools/goreleaser && GOBIN=$(CURDIR)/bin/tools $(GO) install github.com/goreleaser/goreleaser/v2

release: bin/tools/goreleaser ## dist: archives, packages, checksums and SBOMs, of what is committed; publishes nothing
	bin/tools/goreleaser release --snapshot --clean

run:
	$(GO) run ./cmd/godwit

# All at once: where one part waits, links or comes to its end, another has the processors.
test: ## what Go alone runs: in minutes, before every change
	@$(MAKE) --no-print-directory -j driven raced unraced modules

test-all: test lint full programs ## everything that must pass before a change lands

vet:
	$(GO) vet ./...
	@for m in $(MODULES); do echo "$(GO) vet $$m/..."; (cd "$$m" && $(GO) vet ./...) || exit 1; done

lint: linted linted-modules ## style, time, what go vet finds: .golangci.yml

linted:
	$(LINT) run --allow-parallel-runners ./...

linted-modules:
	@for m in $(MODULES); do echo "golangci-lint run $$m/..."; (cd "$$m" && $(LINT) run --allow-parallel-runners ./...) || exit 1; done

format: ## what the linter can mend by itself
	$(LINT) fmt ./...
	$(LINT) run --fix ./...
	@for m in $(MODULES); do (cd "$$m" && $(LINT) run --fix ./...) || exit 1; done

# Ring 1 has no goroutines for the race detector to watch, nor have these of ring 0.
PURE  = /internal/(alarm|arn|caller|config|fastjson|fault|function|iam|ingest|key|kms|multimd5|mutation|packed|platform|policy|publicnet|queue|sms|sorted|stack|deliverystream|topic)(/|$$)

# What has no goroutine and no lock of its own, or runs code that is tested under the race
# detector elsewhere (a shard's lock and its modules in shard, shard/kernel and shard/queues), and what is
# large for its volume (store/pebble, cluster/replica). make test runs it without the race
# detector, and make full under it.
CALM  = /internal$$|/cmd/godwit(/(operate|signed))?$$
CALM += |/internal/api(/(check|cloudwatch|developer|firehose|iam(/.*)?|kms|lambda(/.*)?|logs|mailpages|refusal|sns(/platforms)?|sqs|sts))?$$
CALM += |/internal/api/operator(/(backups|catalog|development|jobs|messages|monitors|recent|rest|setup|sources|sse))?$$
CALM += |/internal/(authorize|bootstrap|cluster/(ca|peer|record|replica)|console|deliver/(envelope|firehose|lambda|outbox|sms|sqs)|durable|keyspace(/values)?|seal)$$
CALM += |/internal/(invoke/(async|process/netns|remote)|monitor/logs/(emf|pattern)|outlet/(files|web)|server/(banner|clustered/answer|recovery|resources|roles|streaming))$$
CALM += |/internal/shard/(backlog|direct|functions|identity|inspect|jobs|keys|platforms|signing|sources|stacks|deliverystreams|texts|transfer)$$
CALM += |/internal/shard/(queues/(deduplog|encryption|faults|queuepolicy|receipt)|topics(/(confirmations|publication|topicpolicy))?)$$
CALM += |/internal/store(/pebble(/(files|mark|pause))?)?$$|/internal/tracing$$|/internal/wire/(awsjson|awsquery|guard|restjson|rpccbor|shape)$$
calm  = $(subst $(eval ) ,,$(CALM))

unit:
	@$(MAKE) --no-print-directory -j raced unraced

unraced: # the linter vets all of it
	$(GO) test -p $(AT_ONCE) -vet=off -timeout 40m $$($(GO) list $(LONG) $(PACKAGES) | grep -E '$(PURE)|$(calm)')

raced:
	$(GO) test -race -p $(AT_ONCE) -vet=off -timeout 40m $$($(GO) list $(LONG) $(PACKAGES) | grep -vE '$(PURE)|$(calm)')

drive:
	@$(MAKE) --no-print-directory -j driven modules

# The server that tests drive is in a directory that is called by what is in the binary:
# so go test sees whether a result in its cache is of the same server.
server:
	@mkdir -p bin/test && $(GO) build -buildvcs=false -o bin/test/godwit ./cmd/godwit
	@built="$(CURDIR)/bin/test/$$($(GO) tool buildid bin/test/godwit | sed 's,.*/,,')"; \
	[ -e "$$built/godwit" ] || { rm -rf bin/test/*/; mkdir "$$built"; cp bin/test/godwit "$$built"; }

driven modules: built = GODWIT_BINARY="$$(echo $(CURDIR)/bin/test/*/godwit)"

driven: server
	$(built) $(GO) test -p $(AT_ONCE) -vet=off -timeout 40m $(DRIVE) $(DRIVERS)

modules: server
	@for m in $(MODULES); do echo "cd $$m && $(GO) test -vet=off -timeout 40m ."; (cd "$$m" && $(built) $(GO) test -vet=off -timeout 40m .) || exit 1; done

# GODWIT_SOAK_TIME (1m) is how long each campaign goes on, and SOAKFLAGS may be
# -race, or -run of some.
SOAKFLAGS ?=

full: ## what make test has small, or without the race detector, at full size, and with it
	CGO_ENABLED=0 GODWIT_FULL=1 $(GO) test -count=1 -vet=off -timeout 40m $(FULL)
	$(GO) test -race -vet=off -timeout 40m $$($(GO) list $(PACKAGES) | grep -E '$(calm)')

programs: export PATH := $(CURDIR)/bin/tools:$(PATH)
programs: ## what needs programs that are not Go's; the end names what was skipped
	@mkdir -p bin; rm -f bin/skipped; touch bin/skipped
	GODWIT_PROGRAMS=1 GODWIT_SKIPPED=$(CURDIR)/bin/skipped $(GO) test -count=1 -timeout 60m $(call tests-of,programs)
	cd test/clients && GODWIT_PROGRAMS=1 $(GO) test -count=1 -timeout 60m
	cd test/console && GODWIT_PROGRAMS=1 $(GO) test -count=1 -timeout 40m
	cd test/deployed && GODWIT_PROGRAMS=1 GODWIT_SKIPPED=$(CURDIR)/bin/skipped $(GO) test -count=1 -timeout 40m
	@sed 's/^/SKIPPED /' bin/skipped

pictures: ## of each page of the console, for docs/console.md; needs Chromium
	cd test/console && GODWIT_PROGRAMS=1 GODWIT_SCREENSHOTS=1 $(GO) test -count=1 -timeout 8m -run 'TestPictures|TestThreeInTheMorning|TestEmptyServer|TestSignIn$$' .

soak: ## the long form of tests and fuzzers, GODWIT_SOAK_TIME each; seeds are printed
	GODWIT_SOAK=1 $(GO) test -v -count=1 -p 1 -timeout 24h $(call tests-of,soak) $(SOAKFLAGS)
	$(MAKE) fuzz FUZZTIME=$${GODWIT_SOAK_TIME:-1m}

bench: build ## the table of docs/performance.md, and how long godwittest takes to start
	$(GO) run ./test/bench -server bin/godwit $(BENCHFLAGS)
	$(GO) test -run '^$$' -bench Start -benchtime 50x ./godwittest

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

.PHONY: site reference

site: ## the documents as a site, in bin/site; builds the pinned Hugo, once
	cd tools/site && $(GO) build -o $(CURDIR)/bin/hugo github.com/gohugoio/hugo
	bin/hugo build --source site --destination $(CURDIR)/bin/site --cleanDestinationDir --noBuildLock --panicOnWarning

reference: ## docs/reference, of the code
	$(GO) test ./internal -run '^Test(Log|Metrics)Document$$' -update
	$(GO) test ./internal/wire -run '^TestErrorsDocument$$' -update
	$(GO) test ./cmd/godwit -run '^TestSettingsDocument$$' -update

clean:
	rm -rf bin
