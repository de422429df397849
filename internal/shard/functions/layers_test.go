package functions_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/storetest"
)

// A version of a layer that was deleted keeps its content as long as a version of a function has it, or is
// about to get it, also over restarts; then nothing is left of it but its number.
func TestLayerContent(t *testing.T) {
	ctx, fs := t.Context(), vfs.NewMem()
	clk := clock.NewVirtual(shardtest.Start)
	st := shardtest.OpenStore(t, fs)
	o := shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clk, FunctionUpdates: time.Second}
	e := shardtest.Open(t, o)
	reopen := func() {
		t.Helper()
		e.Close()
		st.Close()
		st = shardtest.OpenStore(t, fs)
		o.Journal = shardtest.JournalOf(t, st, nil)
		e = shardtest.Open(t, o)
	}
	settle := func() {
		t.Helper()
		if _, err := clk.Advance(ctx, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	name := arn.Layer(shardtest.Region, shardtest.Account, "l")
	zip := bytes.Repeat([]byte("layer"), functions.CodeStep*functions.CodeChunk/4)
	publish := func() uint64 {
		t.Helper()
		v, err := e.PublishLayer(ctx, layer.Publish{Layer: name, Code: function.Code{SHA256: sha256.Sum256(zip)}}, zip)
		if err != nil {
			t.Fatal(err)
		}
		return v.Number
	}
	use := func(number uint64) ([]function.Layer, func()) {
		t.Helper()
		layers, release, err := e.UseLayers(ctx, []arn.ARN{name.LayerVersion(number)})
		if err != nil {
			t.Fatal(err)
		}
		return layers, release
	}
	remove := func(number uint64) {
		t.Helper()
		if err := e.DeleteLayer(ctx, name, number); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(what string, l function.Layer, want bool) {
		t.Helper()
		content, err := e.LayerContent(ctx, l)
		if want && (err != nil || !bytes.Equal(content, zip)) || !want && fault.KindOf(err) != fault.ResourceNotFound {
			t.Errorf("%s: %d bytes, %v", what, len(content), err)
		}
	}
	change := func(layers []function.Layer) {
		t.Helper()
		_, err := e.UpdateFunctionConfiguration(ctx, function.Update{ARN: shardtest.FunctionARN("f"), Change: func(c *function.Config) error {
			c.Layers = layers
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	first, release := use(publish())
	remove(1)
	kept("held by a request", first[0], true)
	release()
	kept("held by nobody", first[0], false)

	layers, release := use(publish())
	create := shardtest.CreateFunction("f", zip[:1])
	create.Config.Layers = layers
	if _, err := e.CreateFunction(ctx, create, zip[:1]); err != nil {
		t.Fatal(err)
	}
	release()
	remove(2)
	kept("of a function that is being created", layers[0], true)
	if _, _, err := e.UseLayers(ctx, []arn.ARN{name.LayerVersion(2)}); fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("a function gets what was deleted: %v", err)
	}
	reopen()
	kept("after a restart", layers[0], true)
	settle()
	if _, err := e.PublishVersion(ctx, function.Publish{ARN: shardtest.FunctionARN("f")}); err != nil {
		t.Fatal(err)
	}
	change(nil)
	settle()
	kept("of a published version", layers[0], true)
	reopen()
	kept("of a published version, after a restart", layers[0], true)
	if err := e.DeleteFunction(ctx, shardtest.FunctionARN("f"), "1"); err != nil {
		t.Fatal(err)
	}
	kept("of nothing", layers[0], false)

	// An update's layers count from its beginning, and those that it replaces to its end.
	layers, release = use(publish())
	change(layers)
	release()
	remove(3)
	settle()
	kept("of an update", layers[0], true)
	change(nil)
	kept("of what an update replaces", layers[0], true)
	settle()
	kept("of what an update has replaced", layers[0], false)
	if n := publish(); n != 4 {
		t.Errorf("the next version is %d", n)
	}
	layers, release = use(4)
	change(layers)
	release()
	settle()
	remove(4)
	if err := e.DeleteFunction(ctx, shardtest.FunctionARN("f"), ""); err != nil {
		t.Fatal(err)
	}
	kept("of a deleted function", layers[0], false)
	if used := e.FunctionUsage(shardtest.Account, shardtest.Region); used != (function.Usage{}) {
		t.Errorf("%+v is used", used)
	}
	reopen()
	for key := range storetest.Dump(t, st) {
		if key[0] == keyspace.CodeSpace {
			t.Fatal("pieces of zips are left")
		}
	}
	if n := publish(); n != 5 {
		t.Errorf("the next version after a restart is %d", n)
	}
	// The next start removes what a crash has left: here, of a request that never ended.
	layers, _ = use(5)
	remove(5)
	kept("of a request", layers[0], true)
	reopen()
	kept("of a request that a crash has ended", layers[0], false)
	e.Close()
	st.Close()
}

// Functions that are made while versions are deleted have their content, or are refused.
func TestLayersAtOnce(t *testing.T) {
	ctx, st := t.Context(), shardtest.NewStore(t)
	defer st.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	name, zip := arn.Layer(shardtest.Region, shardtest.Account, "l"), []byte("layer")
	var made atomic.Int32
	for n := range uint64(50) {
		if _, err := e.PublishLayer(ctx, layer.Publish{Layer: name, Code: function.Code{SHA256: sha256.Sum256(zip)}}, zip); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				layers, release, err := e.UseLayers(ctx, []arn.ARN{name.LayerVersion(n + 1)})
				if err != nil {
					return
				}
				defer release()
				create := shardtest.CreateFunction(fmt.Sprint("f", i), zip)
				create.Config.Layers = layers
				if _, err := e.CreateFunction(ctx, create, zip); err == nil {
					made.Add(1)
				}
			})
		}
		wg.Go(func() { _ = e.DeleteLayer(ctx, name, n+1) })
		wg.Wait()
		for i := range 3 {
			fn := shardtest.FunctionARN(fmt.Sprint("f", i))
			info, err := e.FunctionInfo(ctx, fn, "")
			if err != nil {
				continue
			}
			if content, err := e.LayerContent(ctx, info.Config.Layers[0]); err != nil || !bytes.Equal(content, zip) {
				t.Fatalf("%s lacks its layer: %v", fn, err)
			}
			if err := e.DeleteFunction(ctx, fn, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	if used := e.FunctionUsage(shardtest.Account, shardtest.Region); used != (function.Usage{}) {
		t.Errorf("%+v is used, by none of %d functions", used, made.Load())
	}
}

// The content of layers counts in the bound of an account's code.
func TestLayerQuota(t *testing.T) {
	st := shardtest.NewStore(t)
	defer st.Close()
	e := shardtest.Open(t, shard.Options{
		Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start),
		FunctionLimits: shard.FunctionLimits{CodeBytes: 10},
	})
	defer e.Close()
	publish := func() error {
		_, err := e.PublishLayer(t.Context(), layer.Publish{Layer: arn.Layer(shardtest.Region, shardtest.Account, "l")}, []byte("1234567"))
		return err
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	if err := publish(); fault.KindOf(err) != fault.CodeStorageExceeded {
		t.Error(err)
	}
	_, err := e.CreateFunction(t.Context(), shardtest.CreateFunction("f", []byte("1234")), []byte("1234"))
	if fault.KindOf(err) != fault.CodeStorageExceeded {
		t.Error(err)
	}
}
