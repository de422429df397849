// Package consumetest has the test that all kinds of backlogs must pass: the result of each
// outcome of an attempt, with a real engine, over restarts and crashes.
package consumetest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// Behaviour is the outcome of attempts.
type Behaviour int

// The behaviours.
const (
	Takes   Behaviour = iota // success
	Fails                    // a temporary error
	Refuses                  // a permanent error
	Hangs                    // until cancelled; or like Takes, if nothing can hang
)

// DeadLetters is the dead-letter queue of all that a Kind creates.
var DeadLetters = arn.Queue("us-east-1", "000000000000", "dead-letters")

// Kind is a kind of backlog, with its dispatcher.
type Kind struct {
	Service string // its name in the engine: "sns", "lambda"
	// Create creates what the backlog is of, durably, with DeadLetters as its dead-letter
	// queue. It is called once, before Plug.
	Create func(w *World)
	// Plug makes a dispatcher for w.Engine; the World stops it.
	Plug func(w *World) Dispatcher
	// Behave sets the outcome of later attempts. It is called again after restarts.
	Behave func(w *World, b Behaviour)
	// Submit puts one message into the backlog.
	Submit func(w *World)
	// Delete removes what Create created.
	Delete func(w *World)
	// Attempts is the number of attempts by all dispatchers so far.
	Attempts func() int
	// Left is the number of messages in the backlog.
	Left func(w *World) int64
	// Hanging waits until an attempt hangs; nil: none can.
	Hanging func()
	// Immediate is the number of immediate retries after a failure.
	Immediate int
	// Dead checks a message in the dead-letter queue, above all that its cause is the
	// original one.
	Dead func(w *World, m *message.Message)
}

// Dispatcher makes the attempts of a Kind.
type Dispatcher interface {
	shard.Consumer
	Stop(ctx context.Context) error
}

// World is an engine with a dispatcher.
type World struct {
	*testing.T
	Clock  *clock.Virtual
	Engine *shard.Engine

	kind       Kind
	fs         *vfs.MemFS // nil: no restarts
	store      store.Store
	journal    *journal.Journal
	dispatcher Dispatcher
}

// Must fails the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func newWorld(t *testing.T, k Kind, disk *vfs.MemFS) *World {
	w := &World{
		T: t, kind: k, fs: disk,
		Clock: clock.NewVirtual(time.Date(2024, 2, 29, 13, 0, 0, 0, time.UTC)),
	}
	w.open()
	w.Must(w.Engine.CreateQueue(t.Context(), shard.QueueSpec{ARN: DeadLetters}))
	k.Create(w)
	w.plug()
	w.advance(0)
	t.Cleanup(w.close)
	return w
}

func (w *World) open() {
	w.Helper()
	var err error
	if w.fs == nil {
		w.store = shardtest.NewStore(w)
	} else {
		w.store, err = pebble.Open("data", pebble.Options{FS: w.fs, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	}
	w.Must(err)
	w.journal = journal.Open(journal.Options{Store: w.store})
	w.Engine, err = shard.Open(shard.Options{
		Journal: w.journal, Clock: w.Clock, Logger: slog.New(slog.DiscardHandler),
		FunctionLimits: shard.FunctionLimits{Executions: 1000},
	})
	w.Must(err)
}

func (w *World) plug() {
	w.dispatcher = w.kind.Plug(w)
	w.Engine.SetConsumer(w.kind.Service, w.dispatcher)
}

func (w *World) close() {
	w.Must(w.dispatcher.Stop(context.Background()))
	w.shut()
}

func (w *World) shut() {
	w.Must(w.Engine.Close())
	w.journal.Close()
	w.Must(w.store.Close())
}

// restart continues with a new server on the current disk, or on a copy of the disk after a
// crash. Attempts then succeed.
func (w *World) restart(disk *vfs.MemFS) {
	w.Helper()
	if w.fs == nil {
		w.Fatal("there is no disk to go on with")
	}
	w.close()
	if disk != nil {
		w.fs = disk
	}
	w.open()
	w.kind.Behave(w, Takes)
	w.plug()
	w.advance(0)
}

func (w *World) crash() *vfs.MemFS { return w.fs.CrashClone(vfs.CrashCloneCfg{}) }

func (w *World) advance(d time.Duration) {
	w.Helper()
	_, err := w.Clock.Advance(w.Context(), d)
	w.Must(err)
}

// dead receives the messages of the dead-letter queue.
func (w *World) dead() (all []*message.Message) {
	w.Helper()
	got, err := w.Engine.Receive(w.Context(), shard.ReceiveRequest{Queue: DeadLetters, Max: 10, Visibility: time.Hour})
	if kind := fault.KindOf(err); kind == fault.Unavailable || kind == fault.Throttled {
		return nil // an outage
	}
	w.Must(err)
	for _, m := range got {
		all = append(all, m.Message)
	}
	return all
}

// expect compares the state with the expected one.
func (w *World) expect(when string, attempts int, left int64, dead int) {
	w.Helper()
	got := w.dead()
	if n, l := w.kind.Attempts(), w.kind.Left(w); n != attempts || l != left || len(got) != dead {
		w.Errorf("%s: %d attempts, %d left, %d dead letters; want %d, %d and %d", when, n, l, len(got), attempts, left, dead)
	}
	for _, m := range got {
		w.kind.Dead(w, m)
	}
}

func (w *World) outage(name string) { w.Must(w.Engine.SetFault(DeadLetters, name)) }

// eternity is longer than any retry schedule.
const eternity = 7 * time.Hour

// Run tests a kind; open makes a new one.
func Run(t *testing.T, open func(t *testing.T) Kind) {
	run := func(name string, f func(w *World)) {
		t.Run(name, func(t *testing.T) { f(newWorld(t, open(t), nil)) })
	}
	restarted := func(name string, f func(w *World)) {
		t.Run(name, func(t *testing.T) { f(newWorld(t, open(t), vfs.NewCrashableMem())) })
	}
	run("success", func(w *World) {
		w.kind.Submit(w)
		w.advance(0)
		w.expect("at once", 1, 0, 0)
		w.advance(eternity)
		w.expect("later", 1, 0, 0)
	})
	restarted("failure, then success", func(w *World) {
		w.kind.Behave(w, Fails)
		w.kind.Submit(w)
		w.advance(0)
		made := 1 + w.kind.Immediate
		w.expect("at once", made, 1, 0)
		w.restart(nil) // the next attempt is not due
		w.expect("after a restart", made, 1, 0)
		w.advance(time.Minute)
		w.expect("after the retry", made+1, 0, 0)
	})
	run("refusal", func(w *World) {
		w.kind.Behave(w, Refuses)
		w.kind.Submit(w)
		w.advance(0)
		w.expect("at once", 1, 0, 1)
	})
	run("refusal without a dead-letter queue", func(w *World) {
		w.Must(w.Engine.DeleteQueue(w.Context(), DeadLetters))
		w.kind.Behave(w, Refuses)
		w.kind.Submit(w)
		w.advance(eternity)
		w.Must(w.Engine.CreateQueue(w.Context(), shard.QueueSpec{ARN: DeadLetters}))
		w.advance(eternity)
		w.expect("later", 1, 0, 0)
	})
	for name, crash := range map[string]bool{"restart": false, "crash": true} {
		restarted("refusal, dead-letter queue out of reach, "+name, func(w *World) {
			w.outage("unavailable")
			w.kind.Behave(w, Refuses)
			w.kind.Submit(w)
			w.advance(time.Hour)
			w.expect("while it is out of reach", 1, 1, 0)
			var disk *vfs.MemFS
			if crash {
				disk = w.crash()
			}
			w.restart(disk) // which ends the outage
			w.expect("before the next try", 1, 1, 0)
			w.advance(shard.HandOverWait)
			w.expect("behind it", 1, 0, 1)
		})
	}
	run("refusal, dead-letter queue throttled", func(w *World) {
		w.outage("throttled")
		w.kind.Behave(w, Refuses)
		w.kind.Submit(w)
		w.advance(shard.HandOverWait - time.Millisecond)
		w.outage("none")
		w.expect("before the next try", 1, 1, 0)
		w.advance(time.Millisecond)
		w.expect("behind it", 1, 0, 1)
	})
	run("dead-letter queue goes while it is out of reach", func(w *World) {
		w.outage("unavailable")
		w.kind.Behave(w, Refuses)
		w.kind.Submit(w)
		w.advance(0)
		w.outage("none")
		w.Must(w.Engine.DeleteQueue(w.Context(), DeadLetters))
		w.advance(time.Hour)
		w.Must(w.Engine.CreateQueue(w.Context(), shard.QueueSpec{ARN: DeadLetters}))
		w.expect("later", 1, 0, 0)
	})
	run("deleted between attempts", func(w *World) {
		w.kind.Behave(w, Fails)
		w.kind.Submit(w)
		w.advance(0)
		w.kind.Delete(w)
		w.advance(eternity)
		w.expect("later", 1+w.kind.Immediate, 0, 0)
	})
	run("deleted while the dead-letter queue is out of reach", func(w *World) {
		w.outage("unavailable")
		w.kind.Behave(w, Refuses)
		w.kind.Submit(w)
		w.advance(time.Minute)
		w.kind.Delete(w)
		w.outage("none")
		w.advance(eternity)
		w.expect("later", 1, 0, 0)
	})
	for name, end := range map[string]func(w *World) *vfs.MemFS{
		"stop": func(w *World) *vfs.MemFS {
			ctx, cancel := context.WithCancel(w.Context())
			cancel()
			if err := w.dispatcher.Stop(ctx); err == nil {
				w.Error("cut off, and not said")
			}
			return nil
		},
		"crash": func(w *World) *vfs.MemFS {
			disk := w.crash()
			ctx, cancel := context.WithCancel(w.Context())
			cancel()
			_ = w.dispatcher.Stop(ctx) // its writes are not on that disk
			return disk
		},
	} {
		restarted(name+" during an attempt", func(w *World) {
			if w.kind.Hanging == nil {
				w.Skip("nothing hangs: attempts do not leave the process")
			}
			w.kind.Behave(w, Hangs)
			w.kind.Submit(w)
			w.kind.Hanging()
			w.restart(end(w))
			w.expect("made again at once", 2, 0, 0)
		})
	}
	restarted("crash before an attempt", func(w *World) {
		w.Must(w.dispatcher.Stop(context.Background())) // nothing is leased
		w.kind.Submit(w)
		w.restart(w.crash())
		w.expect("made by the next process", 1, 0, 0)
	})
}
