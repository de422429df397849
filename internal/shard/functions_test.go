package shard

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/queue/layout"
)

func functionARN(name string) arn.ARN { return arn.Function(region, account, name) }

// functionConfig is what a function of tests is made of.
func functionConfig() function.Config {
	return function.Config{
		Package: "Zip", Runtime: "provided.al2023", Handler: "bootstrap", Role: "arn:aws:iam::000000000000:role/r",
		TimeoutS: 3, MemoryMB: 128, EphemeralMB: 512, Tracing: "PassThrough", Architecture: "x86_64",
		Logging: function.Logging{Format: "Text", Group: "/aws/lambda/f"},
	}
}

func createFunction(name string, zip []byte) function.Create {
	return function.Create{
		ARN: functionARN(name), Config: functionConfig(), Code: function.Code{SHA256: sha256.Sum256(zip)},
		Revision: "created", Settled: "active",
	}
}

// A function is pending until it settles, serves its old code while it is
// updated, and survives a restart at any of these.
func TestFunctionLifecycle(t *testing.T) {
	ctx, fs := t.Context(), vfs.NewMem()
	clk := clock.NewVirtual(start)
	o := Options{Store: openStore(t, fs), Clock: clk, FunctionUpdates: time.Second}
	e := openEngine(t, o)
	reopen := func() {
		t.Helper()
		e.Close()
		o.Store.Close()
		o.Store = openStore(t, fs)
		e = openEngine(t, o)
	}
	advance := func(d time.Duration) {
		t.Helper()
		if _, err := clk.Advance(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	first := bytes.Repeat([]byte("first"), codeChunk/2) // three chunks
	second := []byte("second")
	f := functionARN("f")
	if _, err := e.CreateFunction(ctx, createFunction("f", first), first); err != nil {
		t.Fatal(err)
	}
	reopen()
	if _, err := e.Function(ctx, f, ""); fault.KindOf(err) != fault.ResourceConflict {
		t.Errorf("invoked while it is pending: %v", err)
	}
	advance(time.Second)
	serves := func(want []byte, revision string) {
		t.Helper()
		target, err := e.Function(ctx, f, "")
		if err != nil {
			t.Fatal(err)
		}
		zip, err := e.FunctionCode(ctx, target)
		if err != nil || !bytes.Equal(zip, want) || target.Revision != revision {
			t.Errorf("revision %s has %d bytes, %v; want %s and %d", target.Revision, len(zip), err, revision, len(want))
		}
	}
	serves(first, "active")
	reopen()
	serves(first, "active")
	update := function.Update{ARN: f, Code: &function.Code{SHA256: sha256.Sum256(second)}, Revision: "updating", Settled: "updated"}
	if _, err := e.UpdateFunctionCode(ctx, update, second); err != nil {
		t.Fatal(err)
	}
	serves(first, "active")
	if _, err := e.UpdateFunctionCode(ctx, update, second); fault.KindOf(err) != fault.ResourceConflict {
		t.Errorf("updated twice at once: %v", err)
	}
	reopen()
	serves(first, "active")
	advance(time.Second)
	serves(second, "updated")
	if n := countUploads(t, e, f); n != 1 {
		t.Errorf("%d zips are kept, want one", n)
	}
	reopen()
	serves(second, "updated")
	if err := e.DeleteFunction(ctx, f, ""); err != nil {
		t.Fatal(err)
	}
	if n := countUploads(t, e, f); n != 0 {
		t.Errorf("%d zips are left of a deleted function", n)
	}
	reopen()
	if _, err := e.Function(ctx, f, ""); fault.KindOf(err) != fault.ResourceNotFound {
		t.Errorf("a deleted function: %v", err)
	}
	e.Close()
	o.Store.Close()
}

// countUploads counts the zips in a function's shard.
func countUploads(t *testing.T, e *Engine, fn arn.ARN) int {
	t.Helper()
	sh := e.shardOf(fn)
	sh.mu.Lock()
	sh.readable()
	sh.mu.Unlock()
	names := map[string]bool{}
	prefix := codePrefix(sh.id)
	err := each(e.store, layout.PrefixSpan(prefix), func(key, _ []byte) bool {
		names[string(key[len(prefix):len(prefix)+8])] = true
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
