package kernel

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// TestShardNumber: stored state lies where these numbers say; with others it would not be found.
func TestShardNumber(t *testing.T) {
	for a, want := range map[arn.ARN]uint16{
		arn.Queue("us-east-1", "000000000000", "q"):                                               9,
		arn.Queue("eu-west-1", "123456789012", "orders.fifo"):                                     61,
		{Service: "sns", Region: "us-east-1", Account: "000000000000", Resource: "t"}:             37,
		{Service: "lambda", Region: "us-east-1", Account: "000000000000", Resource: "function:f"}: 37,
	} {
		if got := ShardNumber(a); got != want {
			t.Errorf("%s is in shard %d, want %d", a, got, want)
		}
	}
}

// TestClosePoisoned: what a panic has left in memory is not written, and whoever closes learns
// of it; the other shards are closed as ever.
func TestClosePoisoned(t *testing.T) {
	w := newPoisonWorld(t)
	var said []string
	for _, id := range []int{3, 5} {
		w.All[id].Add(&recorder{name: fmt.Sprint(id), said: &said})
	}
	if recovered(func() { w.All[3].View(func() { panic("a mistake") }) }) == nil {
		t.Error("no panic")
	}
	if cause := recovered(func() { _, _ = RunAll(journal.Eager, func(*Tx) error { return nil }, w.All[5], w.All[3], w.All[2]) }); cause != poison.ErrPoisoned { //nolint:errorlint // the very value
		t.Errorf("a command with the poisoned shard and others: %v", cause)
	}
	w.All[2].View(func() {}) // it was released
	w.GoBackground(func() { w.All[3].View(func() {}) })
	if err := w.Close(); !errors.Is(err, poison.ErrPoisoned) {
		t.Errorf("Close says %v", err)
	}
	if fmt.Sprint(said) != "[close 5]" {
		t.Errorf("called for %v", said)
	}
}

// TestClose: long polls end, and what runs in the background does, before the parts are closed.
func TestClose(t *testing.T) {
	var said []string
	k := openKernel(t, memory.New(), clock.System, func(k *Kernel) {
		k.All[3].Add(&recorder{name: "a", said: &said})
	})
	said = nil
	steps := 0
	k.InSteps(func() bool { steps++; return steps < 3 })
	k.GoBackground(func() {
		<-k.Draining
		<-k.Stopping
		k.All[3].View(func() { said = append(said, "background") })
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(said) != "[background close a]" {
		t.Errorf("called for %v", said)
	}
	k = openKernel(t, memory.New(), clock.System, func(*Kernel) {})
	steps = 0 // the first kernel may have got to any of its own
	k.InSteps(func() bool { steps++; return steps < 3 })
	if k.AwaitIdle(); steps != 3 {
		t.Errorf("%d steps, want 3", steps)
	}
}

// TestFatal: any failure of the store ends the process, but for that of a store which was closed
// once nobody is answered any more.
func TestFatal(t *testing.T) {
	for _, c := range []struct {
		err       error
		abandoned bool
		ends      int
	}{
		{errors.New("broken"), false, 1},
		{errors.New("broken"), true, 1},
		{store.ErrClosed, false, 1},
		{store.ErrClosed, true, 0},
	} {
		j := journal.Open(journal.Options{Store: memory.New(), Abandoned: func() bool { return c.abandoned }})
		ends := 0
		New(Options{Journal: j, Clock: clock.System, Fatal: func(error) { ends++ }}).Fatal(c.err)
		if j.Close(); ends != c.ends {
			t.Errorf("%v, abandoned %v: the process ends %d times", c.err, c.abandoned, ends)
		}
	}
}

// failing is a part that cannot be started.
type failing struct {
	NopLifecycle
	load, recovery error
}

func (f failing) Load() error    { return f.load }
func (f failing) Recover() error { return f.recovery }

// TestFailedStart: a node whose state cannot be read, or completed, does not start.
func TestFailedStart(t *testing.T) {
	broken := errors.New("broken")
	for _, part := range []failing{{load: broken}, {recovery: broken}} {
		j := journal.Open(journal.Options{Store: memory.New()})
		k := New(Options{Journal: j, Clock: clock.System})
		k.All[3].Add(part)
		k.All[3].Add(NopLifecycle{})
		if err := k.Load(); !errors.Is(err, broken) {
			t.Errorf("%+v: %v", part, err)
		}
		j.Close()
	}
}

// TestEpochs: each start has a later epoch than the one before, which is durable before anything
// is answered; and no time is before one that an earlier process has seen.
func TestEpochs(t *testing.T) {
	s := memory.New()
	for life := range 3 {
		j := journal.Open(journal.Options{Store: s})
		k := New(Options{Journal: j, Clock: clock.NewVirtual(start.Add(-time.Duration(life) * time.Hour)), Fatal: func(err error) { t.Error(err) }})
		own := k.OwnShard(keyspace.MetricStream)
		if k.OwnShard(keyspace.MetricStream) != own || k.OwnShard(keyspace.LogStream) == own {
			t.Error("a stream has not one shard")
		}
		if err := k.Load(); err != nil {
			t.Fatal(err)
		}
		for _, sh := range k.allShards() {
			if sh.Epoch() != uint32(life+1) || !sh.Stream.Last().Durable() {
				t.Errorf("life %d of shard %d: epoch %d, durable %v", life, sh.ID, sh.Epoch(), sh.Stream.Last().Durable())
			}
		}
		if got := k.Latest(); !got.Equal(start) {
			t.Errorf("life %d: the latest time is %v", life, got)
		}
		own.View(func() {
			moment := k.Clock.Now().Add(time.Minute)
			if got := own.At(moment) - start.UnixMilli(); got != time.Minute.Milliseconds() {
				t.Errorf("life %d: a minute from now is %d ms from the latest time", life, got)
			}
		})
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		j.Close()
	}
}

// TestNow: a command has one time.
func TestNow(t *testing.T) {
	c := clock.NewVirtual(start)
	k := openKernel(t, memory.New(), c, func(*Kernel) {})
	at := func() (now int64) {
		count := k.All[3].CommandCount
		_, _ = RunAll(journal.Lazy, func(*Tx) error {
			if k.All[3].CommandCount == count {
				t.Error("it is taken for the command before it")
			}
			now = k.All[3].Now()
			if _, err := c.Advance(context.Background(), time.Second); err != nil {
				t.Error(err)
			}
			if again := k.All[3].Now(); again != now {
				t.Errorf("the time of a command went on by %d ms", again-now)
			}
			return nil
		}, k.All[3], k.All[2])
		return now - start.UnixMilli()
	}
	if first, second := at(), at(); first != 0 || second != 1000 {
		t.Errorf("commands at %d and %d ms", first, second)
	}
}
