package functions_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/functions"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/test/soak"
)

// A function is pending until it is complete, serves its old code while it is
// updated, and survives a restart at any of these.
func TestFunctionLifecycle(t *testing.T) {
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
	advance := func(d time.Duration) {
		t.Helper()
		if _, err := clk.Advance(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	first := bytes.Repeat([]byte("first"), functions.CodeStep*functions.CodeChunk/2) // three commits
	second := []byte("second")
	f := shardtest.FunctionARN("f")
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", first), first); err != nil {
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
		shown, _ := e.FunctionInfo(ctx, f, "")
		if err != nil || !bytes.Equal(zip, want) || shown.Revision != revision {
			t.Errorf("%d bytes serve, revision %s, %v; want %d and %s", len(zip), shown.Revision, err, len(want), revision)
		}
	}
	serves(first, "active")
	reopen()
	serves(first, "active")
	update := function.Update{ARN: f, Code: &function.Code{SHA256: sha256.Sum256(second)}, Revision: "updating", ReadyRevision: "updated"}
	if _, err := e.UpdateFunctionCode(ctx, update, second); err != nil {
		t.Fatal(err)
	}
	serves(first, "updating")
	if _, err := e.UpdateFunctionCode(ctx, update, second); fault.KindOf(err) != fault.ResourceConflict {
		t.Errorf("updated twice at once: %v", err)
	}
	reopen()
	serves(first, "updating")
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
	st.Close()
}

// The versions of a function that was deleted and created anew go on with the next number, also after a
// restart, until that is forgotten.
func TestVersionsOfADeletedFunction(t *testing.T) {
	ctx, fs := t.Context(), vfs.NewMem()
	var e *shard.Engine
	var st store.Store
	reopen := func() {
		t.Helper()
		if e != nil {
			e.Close()
			st.Close()
		}
		st = shardtest.OpenStore(t, fs)
		e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start)})
	}
	reopen()
	f, other := shardtest.FunctionARN("f"), shardtest.FunctionARN("other")
	create := func(name string, want string) {
		t.Helper()
		cmd := shardtest.CreateFunction(name, []byte("zip"))
		cmd.Publish = want != function.Latest
		if info, err := e.CreateFunction(ctx, cmd, []byte("zip")); err != nil || info.Version != want {
			t.Errorf("%s: created is version %s, %v; want %s", name, info.Version, err, want)
		}
	}
	remove := func(a arn.ARN) {
		t.Helper()
		if err := e.DeleteFunction(ctx, a, ""); err != nil {
			t.Fatal(err)
		}
	}
	create("f", "1")
	create("other", "1")
	remove(f)
	create("f", "2")
	if err := e.DeleteFunction(ctx, f, "2"); err != nil {
		t.Fatal(err)
	}
	remove(f)
	reopen()
	create("f", function.Latest)
	reopen()
	if info, err := e.PublishVersion(ctx, function.Publish{ARN: f}); err != nil || info.Version != "3" {
		t.Error(info.Version, err)
	}
	remove(f)
	remove(other)
	if err := e.ForgetVersions(ctx, f.Account, "eu-west-1"); err != nil {
		t.Fatal(err)
	}
	create("other", "2")
	remove(other)
	if err := e.ForgetVersions(ctx, f.Account, f.Region); err != nil {
		t.Fatal(err)
	}
	create("f", "1")
	reopen()
	create("other", "1")
	e.Close()
	st.Close()
}

// countUploads counts the zips in a function's shard.
func countUploads(t *testing.T, e *shard.Engine, fn arn.ARN) int {
	t.Helper()
	sh := e.Topics.ShardOf(fn)
	sh.View(func() {
		sh.FlushAppended()
	})
	names := map[string]bool{}
	prefix := functions.CodePrefix(sh.ID)
	err := store.Each(e.Store, keyspace.Prefix(prefix), func(key, _ []byte) error {
		names[string(key[len(prefix):len(prefix)+8])] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestCrashWhileUploading crashes before each commit of a creation, an update and
// a deletion, keeping what was synced and a random part of the rest. What is found
// afterwards is a whole function, or none, and no code that no version has.
func TestCrashWhileUploading(t *testing.T) {
	ctx, f := t.Context(), shardtest.FunctionARN("f")
	fs := vfs.NewCrashableMem()
	first, second := bytes.Repeat([]byte{1}, 2*functions.CodeStep*functions.CodeChunk+1), bytes.Repeat([]byte{2}, functions.CodeStep*functions.CodeChunk+1)
	type disk struct {
		fs      *vfs.MemFS
		present bool // as far as it was answered before the crash
		code    []byte
	}
	var disks []disk
	var present bool
	var code []byte
	r := rand.New(rand.NewPCG(soak.Seeds(t, 1)[0], 1))
	st := shardtest.OpenStore(t, fs)
	o := shard.Options{Journal: shardtest.JournalOf(t, st, func([]byte) {
		disks = append(disks, disk{
			fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(r.Uint64(), 0))}), present, code,
		})
	}), Clock: clock.NewVirtual(shardtest.Start), FunctionUpdates: time.Second}
	e := shardtest.Open(t, o)
	advance := func() {
		if _, err := o.Clock.(*clock.Virtual).Advance(ctx, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", first), first); err != nil {
		t.Fatal(err)
	}
	present, code = true, first
	advance()
	update := function.Update{ARN: f, Code: &function.Code{SHA256: sha256.Sum256(second)}}
	if _, err := e.UpdateFunctionCode(ctx, update, second); err != nil {
		t.Fatal(err)
	}
	code = nil // either serves from the moment at which the update completes
	advance()
	if err := e.DeleteFunction(ctx, f, ""); err != nil {
		t.Fatal(err)
	}
	present = false
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("g", first), first); err != nil { // so that the deletion is seen as well
		t.Fatal(err)
	}
	e.Close()
	st.Close()
	outcomes := map[string]int{}
	for i, d := range disks {
		if !d.present && i%soak.Size(3, 1) > 0 { // of those that have nothing there are many
			continue
		}
		st := shardtest.OpenStore(t, d.fs)
		o := shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start), FunctionUpdates: time.Second}
		e := shardtest.Open(t, o)
		if _, err := o.Clock.(*clock.Virtual).Advance(ctx, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		target, err := e.Function(ctx, f, "")
		uploads := countUploads(t, e, f)
		switch {
		case fault.KindOf(err) == fault.ResourceNotFound:
			outcomes["none"]++
			if d.present && d.code != nil || uploads > 0 {
				t.Errorf("crash %d: the function is gone, with %d zips", i, uploads)
			}
		case err != nil:
			t.Errorf("crash %d: %v", i, err)
		default:
			zip, err := e.FunctionCode(ctx, target)
			if err != nil || sha256.Sum256(zip) != target.Code.SHA256 || uploads != 1 {
				t.Errorf("crash %d: %d bytes of code, %v, %d zips", i, len(zip), err, uploads)
			}
			if d.code != nil && !bytes.Equal(zip, d.code) && !bytes.Equal(zip, second) {
				t.Errorf("crash %d: other code than what was accepted", i)
			}
			outcomes[string(zip[:1])]++
		}
		e.Close()
		st.Close()
	}
	if len(disks) < 8 || len(outcomes) != 3 {
		t.Errorf("%d crashes led to %v: too few to tell", len(disks), outcomes)
	}
}

// TestAdmitFunction: services come in by the policy of what they name, and by
// nothing else.
func TestAdmitFunction(t *testing.T) {
	ctx, f := t.Context(), shardtest.FunctionARN("f")
	s := shardtest.NewStore(t)
	defer s.Close()
	clk := clock.NewVirtual(shardtest.Start)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clk})
	defer e.Close()
	cmd := shardtest.CreateFunction("f", nil)
	cmd.Code, cmd.Publish = function.Code{URL: "http://x/"}, true
	if _, err := e.CreateFunction(ctx, cmd, nil); err != nil {
		t.Fatal(err)
	}
	const sns, source = "sns.amazonaws.com", "arn:aws:sns:us-east-1:000000000000:orders"
	admits := func(want fault.Kind, fn arn.ARN, service, source, account string) {
		t.Helper()
		err := e.AdmitFunction(ctx, fn, service, source, account)
		if got := fault.KindOf(err); got != want || (want == fault.Internal) != (err == nil) {
			t.Errorf("%s for %s: %v", fn, source, err)
		}
	}
	const yes = fault.Internal // that there is no refusal
	admits(fault.AccessDenied, f, sns, source, shardtest.Account)
	admits(fault.ResourceNotFound, shardtest.FunctionARN("g"), sns, source, shardtest.Account)
	permit := func(qualifier string) {
		t.Helper()
		err := e.PermitFunction(ctx, function.Permit{Function: f, Qualifier: qualifier, Permission: function.Permission{
			Sid: "s", Effect: "Allow", Principal: []byte(`{"Service":"` + sns + `"}`), Action: "lambda:InvokeFunction", Resource: f.Qualify(qualifier).String(),
			Condition: []byte(`{"ArnLike":{"AWS:SourceArn":"` + source + `"},"StringEquals":{"AWS:SourceAccount":"` + shardtest.Account + `"}}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	permit("")
	admits(yes, f, sns, source, shardtest.Account)
	admits(fault.AccessDenied, f, sns, source+"2", shardtest.Account)
	admits(fault.AccessDenied, f, sns, source, "111122223333")
	admits(fault.AccessDenied, f, "sqs.amazonaws.com", source, shardtest.Account)
	admits(fault.AccessDenied, f.Qualify("1"), sns, source, shardtest.Account)
	admits(fault.ResourceNotFound, f.Qualify("2"), sns, source, shardtest.Account)
	permit("1")
	admits(yes, f.Qualify("1"), sns, source, shardtest.Account)
	if err := e.ForbidFunction(ctx, function.Forbid{Function: f, Sid: "s"}); err != nil {
		t.Fatal(err)
	}
	admits(fault.AccessDenied, f, sns, source, shardtest.Account)
	admits(yes, f.Qualify("1"), sns, source, shardtest.Account)
}

// A refused upload leaves nothing, whoever came first.
func TestRefusedUploadsLeaveNothing(t *testing.T) {
	ctx := t.Context()
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start), FunctionLimits: functions.FunctionLimits{CodeBytes: 100}})
	defer e.Close()
	var refused atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			zip := bytes.Repeat([]byte{byte(i)}, 60)
			if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("f", zip), zip); err != nil {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if n := countUploads(t, e, shardtest.FunctionARN("f")); refused.Load() != 7 || n != 1 {
		t.Errorf("%d are refused, and %d zips are kept", refused.Load(), n)
	}
	zip := make([]byte, 60)
	if _, err := e.CreateFunction(ctx, shardtest.CreateFunction("g", zip), zip); fault.KindOf(err) != fault.CodeStorageExceeded {
		t.Errorf("more than the account may have: %v", err)
	}
	if n := countUploads(t, e, shardtest.FunctionARN("g")); n != 0 && e.Topics.ShardOf(shardtest.FunctionARN("g")) != e.Topics.ShardOf(shardtest.FunctionARN("f")) {
		t.Errorf("%d zips are kept of a refused function", n)
	}
}

// An upload whose client hangs up once it is on the disk leaves nothing.
func TestUploadsOfClientsThatHangUp(t *testing.T) {
	s := shardtest.NewStore(t)
	defer s.Close()
	var hangUp atomic.Pointer[context.CancelFunc]
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, func([]byte) {
		if cancel := hangUp.Swap(nil); cancel != nil {
			(*cancel)()
		}
	}), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	f, zip := shardtest.FunctionARN("f"), []byte("zip")
	hungUp := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		hangUp.Store(&cancel)
		return ctx
	}
	if _, err := e.CreateFunction(hungUp(), shardtest.CreateFunction("f", zip), zip); !errors.Is(err, context.Canceled) {
		t.Errorf("created: %v", err)
	}
	if n := countUploads(t, e, f); n != 0 {
		t.Errorf("%d zips are kept of a function that was not created", n)
	}
	if _, err := e.CreateFunction(t.Context(), shardtest.CreateFunction("f", zip), zip); err != nil {
		t.Fatal(err)
	}
	if _, err := e.UpdateFunctionCode(hungUp(), function.Update{ARN: f, Code: &function.Code{}}, zip); !errors.Is(err, context.Canceled) {
		t.Errorf("updated: %v", err)
	}
	if n := countUploads(t, e, f); n != 1 {
		t.Errorf("%d zips are kept, want that of the function", n)
	}
}

// Who is told of deletions learns of functions and versions that are gone, and of nothing else.
func TestDeletionsAreTold(t *testing.T) {
	ctx := t.Context()
	st := shardtest.OpenStore(t, vfs.NewMem())
	defer st.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	var told []string
	e.SetDeletionWatcher(func(fn arn.ARN, version string) { told = append(told, fn.FunctionName()+" "+version) })
	f := shardtest.FunctionARN("f")
	cmd := shardtest.CreateFunction("f", nil)
	cmd.Code, cmd.Publish = function.Code{URL: "http://x/"}, true
	if _, err := e.CreateFunction(ctx, cmd, nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		qualifier string
		refused   bool
	}{{function.Latest, true}, {"1", false}, {"", false}, {"", true}} {
		if err := e.DeleteFunction(ctx, f, tt.qualifier); (err != nil) != tt.refused {
			t.Errorf("%q: %v", tt.qualifier, err)
		}
	}
	if want := []string{"f 1", "f "}; !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
}

// Whoever lacks a queue or a function hears of it once it is there, and not of what
// was refused.
func TestCreationsAreReported(t *testing.T) {
	ctx := t.Context()
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	var told []arn.ARN
	e.SetCreationWatcher(func(a arn.ARN) { told = append(told, a) })
	remote := shardtest.CreateFunction("f", nil)
	remote.Code = function.Code{URL: "http://x/"}
	for _, refused := range []bool{false, true} {
		_, err := e.CreateFunction(ctx, remote, nil)
		_, err2 := e.CreateAlias(ctx, function.CreateAlias{Function: shardtest.FunctionARN("f"), Name: "live", Version: function.Latest})
		if (err != nil) != refused || (err2 != nil) != refused {
			t.Fatal(err, err2)
		}
	}
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("r"), Attributes: map[string]string{"DelaySeconds": "-1"}}); err == nil {
		t.Fatal("made")
	}
	if want := []arn.ARN{shardtest.FunctionARN("f"), shardtest.FunctionARN("f"), shardtest.QueueARN("q")}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
}

// What is reserved is known at once, through deletions and restarts.
func TestReservedExecutions(t *testing.T) {
	ctx := t.Context()
	st := shardtest.NewStore(t)
	defer st.Close()
	o := shard.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.NewVirtual(shardtest.Start), FunctionLimits: functions.FunctionLimits{Executions: 1000, Unreserved: 100}}
	e := shardtest.Open(t, o)
	wants := func(n int) {
		t.Helper()
		if got := e.ReservedExecutions(shardtest.Account, shardtest.Region); got != n || got != e.FunctionUsage(shardtest.Account, shardtest.Region).Reserved {
			t.Errorf("%d are reserved, want %d", got, n)
		}
	}
	wants(0)
	for i, name := range []string{"f", "g"} {
		cmd := shardtest.CreateFunction(name, nil)
		cmd.Code = function.Code{URL: "http://x/"}
		if _, err := e.CreateFunction(ctx, cmd, nil); err != nil {
			t.Fatal(err)
		}
		n := 10 + i
		if err := e.ReserveExecutions(ctx, shardtest.FunctionARN(name), &n); err != nil {
			t.Fatal(err)
		}
	}
	wants(21)
	e.Close()
	e = shardtest.Open(t, o)
	wants(21)
	if err := e.DeleteFunction(ctx, shardtest.FunctionARN("f"), ""); err != nil {
		t.Fatal(err)
	}
	wants(11)
	if err := e.ReserveExecutions(ctx, shardtest.FunctionARN("g"), nil); err != nil {
		t.Fatal(err)
	}
	wants(0)
	e.Close()
}
