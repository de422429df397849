// Package internal holds the rule of docs/architecture.md on who may import whom.
package internal

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "godwit.dev/godwit/"

// rings lists the directories below internal, lowest first. A package imports
// only from lines above its own, its ancestors, its descendants, and bases. The
// lines of one ring are in the order in which they may depend on each other.
var rings = [][]string{
	{"decimal", "multimd5", "packed", "sorted"}, // 0
	{"arn", "caller", "clock", "durable", "fastjson", "fault", "keyspace", "mutation", "poison", "publicnet"},
	{"outgoing", "sms"},
	{"config", "sigv4"},
	{"limit", "tracing"},
	pure, // 1
	{"seal"},
	{"certs"},
	{"bootstrap"},
	{"authorize"},
	{"store"},
	{"journal"},
	{"cluster"},
	{"shard"},   // 2
	{"consume"}, // 3
	{"deliver", "invoke", "monitor", "outlet"},
	{"keyspace/values"},
	{"api"}, // 4
	{"audit"},
	{"wire"}, // 5
	{"console"},
	{"server"}, // 6
}

// pure are the directories of ring 1: command, now → new state, mutations, effects.
var pure = []string{"alarm", "deliverystream", "function", "iam", "ingest", "key", "kms", "metricmath", "platform", "policy", "queue", "stack", "topic"}

// impure is what ring 1 must not import outside of its tests.
var impure = []string{
	"crypto/rand", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "sync", "sync/atomic", "syscall",
	module + "internal/clock", module + "internal/config",
}

// bases are packages that those beside them may import.
var bases = []string{
	"api/check", "api/constraints", "api/iam/entity", "api/lambda/layers", "api/lambda/mappings", "api/lambda/request", "api/operator/rest", "api/operator/live", "api/operator/recent", "api/operator/catalog", "api/operator/messages", "api/operator/jobs", "api/operator/monitors", "api/refusal", "api/sns/arns", "deliver/envelope", "deliver/outbox", "deliver/sendertest", "invoke/process/netns", "limit/rates", "monitor/logs/pattern", "monitor/logs/subscription", "monitor/metrics", "server/ids", "server/mailing", "server/pushing", "server/secret", "server/shutdown", "server/texting", "store/storetest", "topic/retry", "wire/awsjson", "wire/shape",
	"store/pebble/check", "store/pebble/files", "store/pebble/mark", "store/pebble/pace", "store/pebble/badblocks",
	"shard/kernel", "shard/queues", "shard/transfer", "shard/backlog", "shard/topics", "shard/functions", // in this order, since no import is circular
	"stack/document", "stack/parameter", "stack/sam", "stack/template", // in this order
	"server/deploying/fit", "server/deploying/holder", "server/deploying/step", // in this order
	"server/clustered/roster", "server/clustered/status", "server/clustered/nodeapi", "server/clustered/storecopy", "server/heap", "server/hold", "server/recovery", "server/resources", "cluster/ca", "cluster/record", "cluster/replog", "cluster/overlay", "cluster/replica", // in this order
	"queue/fair", "queue/grouping", "queue/layout", "queue/leases", "queue/message", "queue/order", "queue/schedule",
}

// roots says what packages outside of internal may import of it; the others none.
var roots = map[string][]string{
	"cmd":        {"api/refusal", "bootstrap", "clock", "cluster/ca", "cluster/peer", "config", "server", "server/backup", "server/backup/offsite", "server/clustered", "server/clustered/admin", "server/clustered/local", "server/clustered/roster", "server/clustered/storecopy", "server/recovery", "server/resources", "server/rootkey", "topic/retry/plan"}, // a policy's plan is a sum and needs no server
	"test":       {""},
	"godwittest": {"config", "server"}, // what users' tests import
}

func TestRings(t *testing.T) {
	seen := map[string]bool{}
	for file, imports := range goFiles(t) {
		dir, test := filepath.ToSlash(filepath.Dir(file)), strings.HasSuffix(file, "_test.go")
		root, pkg, inside := strings.Cut(dir, "/")
		inside = inside && root == "internal"
		if inside {
			seen[home(pkg)] = true
		}
		for _, imported := range imports {
			path, own := strings.CutPrefix(imported, module)
			path, ofInternal := strings.CutPrefix(path, "internal/")
			switch {
			case inside && !test && slices.Contains(pure, home(pkg)) && slices.Contains(impure, imported):
				t.Errorf("%s imports %s: ring 1 has no I/O, goroutine, clock, randomness or logger", file, imported)
			case own && strings.HasPrefix(path, "test/") && root != "test" && !test:
				t.Errorf("%s imports %s: only tests may import it", file, imported)
			case own && ofInternal && inside && !allowed(pkg, path, test):
				t.Errorf("%s imports %s, which is not below it: see docs/architecture.md, and rings above", file, imported)
			case own && ofInternal && !inside && !slices.ContainsFunc(roots[root], func(p string) bool { return p == "" || p == path }):
				t.Errorf("%s imports %s: it uses the wire as anybody else does", file, imported)
			}
		}
	}
	for _, name := range slices.Concat(rings...) {
		if !seen[name] {
			t.Errorf("internal/%s has a ring, and no file", name)
		}
		delete(seen, name)
	}
	for name := range seen {
		t.Errorf("internal/%s has no ring: give it a place in this test and in docs/architecture.md", name)
	}
}

// allowed reports whether a package, or a test in it, may import another, both
// below internal.
func allowed(pkg, imported string, test bool) bool {
	if within(pkg, imported) || within(imported, pkg) || test && imported == "api/refusal" {
		return true
	}
	from, to := home(pkg), home(imported)
	if from == to {
		return test || slices.ContainsFunc(bases, func(base string) bool {
			return within(imported, base) && within(pkg, base[:strings.LastIndexByte(base, '/')])
		})
	}
	return line(to) >= 0 && line(to) < line(from)
}

// home is the directory of rings that a package is in, or else its first one.
func home(pkg string) string {
	found, _, _ := strings.Cut(pkg, "/")
	for _, name := range slices.Concat(rings...) {
		if within(pkg, name) && len(name) > len(found) {
			found = name
		}
	}
	return found
}

func line(name string) int {
	return slices.IndexFunc(rings, func(names []string) bool { return slices.Contains(names, name) })
}

// within reports that a path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
