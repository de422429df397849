package eventsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// lab is an engine with one queue and one mapping, and a pool whose function does
// what the test says. Receives give what lies in the queue, or wait.
type lab struct {
	mapping mapping.Mapping
	run     func(event []byte) (invoke.Outcome, error)

	mu       sync.Mutex
	queue    []string
	sent     chan struct{} // closed when something is sent
	waiting  func(bool)    // of the receive that waits
	receive  context.Context
	polls    int // receives that wait
	running  int
	most     int // batches under way at once
	deleted  []string
	returned []string
	unseen   []string // given back without a count
	hidden   []string
	watch    func(arn.ARN, *mapping.Mapping)
	made     func(arn.ARN)
	missing  error // why the function cannot be found
	lookups  int   // of the function
	draining chan struct{}
	key      error // why the queue's key does not decrypt
}

func newLab(set mapping.Settings) *lab {
	return &lab{
		mapping: mapping.Mapping{
			ARN:      mapping.ARN("us-east-1", "000000000000", "u"),
			Queue:    arn.ARN{Service: "sqs", Region: "us-east-1", Account: "000000000000", Resource: "q"},
			Function: arn.Function("us-east-1", "000000000000", "f"), Settings: set, Enabled: true,
		},
		run: func([]byte) (invoke.Outcome, error) { return invoke.Outcome{}, nil },
	}
}

func (l *lab) send(bodies ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, bodies...)
	if l.waiting != nil {
		l.waiting(false)
		l.waiting = nil
	}
	close(l.sent)
	l.sent = make(chan struct{})
}

func (l *lab) Mapping(context.Context, arn.ARN) (mapping.Mapping, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mapping, nil
}

func (l *lab) Mappings(context.Context) ([]mapping.Mapping, error) {
	return []mapping.Mapping{l.mapping}, nil
}

func (l *lab) SetMappingWatcher(changed func(arn.ARN, *mapping.Mapping)) { l.watch = changed }

func (l *lab) SetCreationWatcher(made func(arn.ARN)) { l.made = made }

func (l *lab) Function(context.Context, arn.ARN, string) (function.Target, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookups++
	return function.Target{Timeout: 3 * time.Second}, l.missing
}

func (l *lab) QueueConfig(context.Context, arn.ARN) (queue.Config, error) {
	return queue.Config{Visibility: 30 * time.Second}, nil
}

func (l *lab) MayDecrypt(context.Context, arn.ARN, *caller.Caller) error { return l.key }

func (l *lab) Receive(ctx context.Context, req shard.ReceiveRequest) ([]shard.Received, error) {
	l.mu.Lock()
	if len(l.queue) == 0 {
		sent := l.sent
		l.polls++
		l.waiting, l.receive = req.Waiting, ctx
		l.waiting(true)
		l.mu.Unlock()
		over, stop := after(req.Wait)
		select {
		case <-sent:
		case <-over:
		case <-ctx.Done():
		}
		stop()
		l.mu.Lock()
		l.polls--
		if l.waiting != nil {
			l.waiting(false)
			l.waiting = nil
		}
		if err := ctx.Err(); err != nil {
			l.mu.Unlock()
			return nil, err
		}
	}
	defer l.mu.Unlock()
	var out []shard.Received
	for len(l.queue) > 0 && len(out) < req.Max {
		body := l.queue[0]
		l.queue = l.queue[1:]
		out = append(out, shard.Received{Message: &message.Message{Body: []byte(body)}, ReceiptHandle: body[:1]})
	}
	return out, nil
}

func (l *lab) DeleteMessages(_ context.Context, _ arn.ARN, handles []string) ([]error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted = append(l.deleted, handles...)
	return nil, nil
}

func (l *lab) ChangeVisibility(_ context.Context, _ arn.ARN, changes []shard.VisibilityChange) ([]error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		if c.Timeout == 0 {
			l.returned = append(l.returned, c.Handle)
		} else {
			l.hidden = append(l.hidden, c.Handle)
		}
	}
	return nil, nil
}

func (l *lab) ReleaseMessages(_ context.Context, _ arn.ARN, handles []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unseen = append(l.unseen, handles...)
	return nil
}

func (l *lab) Invoke(_ context.Context, in invoke.Invocation) (invoke.Outcome, error) {
	l.mu.Lock()
	l.running++
	l.most = max(l.most, l.running)
	l.mu.Unlock()
	out, err := l.run(in.Payload)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	return out, err
}

func (l *lab) check(t *testing.T, what string, got *[]string, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Sort(*got); !slices.Equal(*got, want) {
		t.Errorf("%s: %v, want %v", what, *got, want)
	}
}

// with runs pollers in a bubble, on its time or on a clock of their own.
func (l *lab) with(t *testing.T, clk clock.Clock, f func(t *testing.T, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l.sent, l.draining = make(chan struct{}), make(chan struct{}) // of the bubble
		p, err := Start(Options{Engine: l, Pool: l, Clock: clk, Logger: slog.New(slog.DiscardHandler), Draining: l.draining})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop := sync.OnceFunc(func() {
			if err := p.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		defer stop()
		f(t, stop)
	})
}

func rest(d time.Duration) {
	over, _ := after(d)
	<-over
}

// An idle mapping costs one receive that waits, and none once it is disabled.
func TestIdle(t *testing.T) {
	l := newLab(mapping.Settings{BatchSize: 10})
	l.with(t, clock.System, func(t *testing.T, _ func()) {
		polls := func(want int) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.polls != want {
				t.Errorf("%d receives wait, want %d", l.polls, want)
			}
		}
		polls(1)
		rest(time.Hour)
		polls(1)
		l.watch(l.mapping.ARN, &l.mapping) // nothing has changed
		polls(1)
		l.mu.Lock()
		l.mapping.Enabled = false
		l.mu.Unlock()
		l.watch(l.mapping.ARN, &l.mapping)
		polls(0)
	})
}

// A virtual clock that is moved right after a message was sent, or after what a
// mapping lacked was made, waits for the function.
func TestClockWaits(t *testing.T) {
	for range 50 { // whoever comes first
		l := newLab(mapping.Settings{BatchSize: 1})
		l.missing = fault.New(fault.ResourceNotFound, "")
		clk := clock.NewVirtual(time.Unix(0, 0))
		l.with(t, clk, func(t *testing.T, _ func()) {
			advance := func(want ...string) {
				t.Helper()
				if _, err := clk.Advance(t.Context(), time.Hour); err != nil {
					t.Error(err)
				}
				l.check(t, "done", &l.deleted, want...)
			}
			l.send("a")
			advance() // the clock does not wait for what is missing
			l.mu.Lock()
			l.missing = nil
			l.mu.Unlock()
			l.made(l.mapping.Function)
			advance("a")
			l.send("b", "c", "d", "e", "f", "g", "h")
			advance("a", "b", "c", "d", "e", "f", "g", "h")
		})
	}
}

// In the moment in which a mapping is disabled, deleted or made another one, nothing
// more is taken for it as it was.
func TestChangesHoldAtOnce(t *testing.T) {
	for name, change := range map[string]func(*mapping.Mapping){
		"none": func(*mapping.Mapping) {}, "settings": func(m *mapping.Mapping) { m.BatchSize = 5 }, "disabled": func(m *mapping.Mapping) { m.Enabled = false },
		"deleted": nil,
	} {
		l := newLab(mapping.Settings{BatchSize: 10})
		l.with(t, clock.System, func(t *testing.T, _ func()) {
			now, receive := &l.mapping, l.receive
			if change == nil {
				now = nil
			} else {
				change(now)
			}
			l.watch(mapping.ARN("us-east-1", "000000000000", "u"), now)
			if ended := receive.Err() != nil; ended != (name != "none") {
				t.Errorf("%s: the receive has ended: %v", name, ended)
			}
		})
	}
}

// A mapping whose function or queue is gone looks for it from time to time, and goes
// on at once when it is made again.
func TestMissing(t *testing.T) {
	for _, what := range []string{"function", "queue", "neither, which is seen all the same"} {
		t.Run(what, func(t *testing.T) {
			l := newLab(mapping.Settings{BatchSize: 10})
			l.missing = fault.New(fault.ResourceNotFound, "")
			l.with(t, clock.System, func(t *testing.T, _ func()) {
				rest(time.Hour)
				l.mu.Lock()
				if l.lookups < 100 || l.lookups > 400 {
					t.Errorf("%d tries in an hour", l.lookups)
				}
				l.missing = nil
				l.mu.Unlock()
				l.send("a")
				switch what {
				case "function":
					l.made(l.mapping.Function)
				case "queue":
					l.made(l.mapping.Queue)
				default:
					l.made(arn.Function("us-east-1", "000000000000", "other"))
					synctest.Wait()
					l.mu.Lock()
					if len(l.deleted) > 0 {
						t.Error("another function woke it")
					}
					l.mu.Unlock()
					rest(longRest)
				}
				synctest.Wait()
				l.mu.Lock()
				defer l.mu.Unlock()
				if !slices.Equal(l.deleted, []string{"a"}) {
					t.Errorf("done: %v", l.deleted)
				}
			})
		})
	}
}

// What is larger than an event is given in parts, one after the other, each hidden
// for long enough.
func TestLargeBatch(t *testing.T) {
	l := newLab(mapping.Settings{BatchSize: 10})
	var events []string
	l.run = func(event []byte) (invoke.Outcome, error) {
		if len(event) > maxPayload {
			t.Errorf("an event of %d bytes", len(event))
		}
		text := ""
		for _, c := range "012345678" {
			if bytes.Contains(event, []byte(fmt.Sprintf(`"receiptHandle":"%c"`, c))) {
				text += string(c)
			}
		}
		events = append(events, text)
		if text == "56" {
			return invoke.Outcome{FunctionError: "Unhandled"}, nil
		}
		return invoke.Outcome{}, nil
	}
	var bodies []string
	for _, c := range "0123456789"[:9] {
		size := 1 << 20
		if c == '6' || c == '7' {
			size = 3 << 20
		}
		bodies = append(bodies, string(c)+string(bytes.Repeat([]byte("x"), size)))
	}
	l.with(t, clock.System, func(t *testing.T, _ func()) {
		l.send(bodies...)
		synctest.Wait()
		l.check(t, "events", &events, "01234", "56")
		l.check(t, "deleted", &l.deleted, "0", "1", "2", "3", "4")
		l.check(t, "hidden anew", &l.hidden, "5", "6", "7", "8")
		l.check(t, "given back", &l.unseen, "7", "8")
	})
}

// More batches are under way at once the longer there is a backlog, and never more
// than the mapping allows.
func TestScaling(t *testing.T) {
	for _, c := range []struct {
		most, first, later int
	}{{0, 5, 50}, {20, 5, 20}, {3, 3, 3}} {
		l := newLab(mapping.Settings{BatchSize: 1, Concurrency: c.most})
		l.run = func([]byte) (invoke.Outcome, error) {
			rest(100 * time.Millisecond)
			return invoke.Outcome{}, nil
		}
		l.with(t, clock.System, func(t *testing.T, _ func()) {
			l.send(slices.Repeat([]string{"m"}, 20_000)...)
			synctest.Wait()
			l.mu.Lock()
			if l.most > c.first+1 || l.most < c.first {
				t.Errorf("at first %d under way, want %d", l.most, c.first)
			}
			l.mu.Unlock()
			rest(10 * time.Second)
			l.mu.Lock()
			if c.most == 0 && (l.most < c.later-1 || l.most > c.later+10) || c.most > 0 && l.most != c.later {
				t.Errorf("later %d under way, want about %d", l.most, c.later)
			}
			l.queue = nil
			l.mu.Unlock()
		})
	}
}

// At its end a poller releases what it has received, and waits for what runs.
func TestStopGivesBack(t *testing.T) {
	l := newLab(mapping.Settings{BatchSize: 100, Window: time.Minute})
	l.with(t, clock.NewVirtual(time.Unix(0, 0)), func(t *testing.T, stop func()) {
		l.send("a", "b")
		synctest.Wait()
		stop()
		l.check(t, "given back", &l.unseen, "a", "b")
	})
	l = newLab(mapping.Settings{BatchSize: 100})
	l.run = func([]byte) (invoke.Outcome, error) {
		rest(time.Second)
		return invoke.Outcome{}, nil
	}
	l.with(t, clock.System, func(t *testing.T, stop func()) {
		l.send("a")
		synctest.Wait()
		stop()
		l.check(t, "deleted", &l.deleted, "a")
	})
}

// Whatever becomes of a batch, a virtual clock can continue afterwards.
func TestHoldsAreReleased(t *testing.T) {
	throttled := fault.New(fault.Throttled, "Rate Exceeded.")
	tries := 0
	for name, run := range map[string]func([]byte) (invoke.Outcome, error){
		"success":   func([]byte) (invoke.Outcome, error) { return invoke.Outcome{}, nil },
		"failure":   func([]byte) (invoke.Outcome, error) { return invoke.Outcome{FunctionError: "Unhandled"}, nil },
		"system":    func([]byte) (invoke.Outcome, error) { return invoke.Outcome{}, errors.New("broken") },
		"throttled": func([]byte) (invoke.Outcome, error) { return invoke.Outcome{}, throttled },
		"throttled now": func([]byte) (invoke.Outcome, error) {
			if tries++; tries < 4 {
				return invoke.Outcome{}, throttled
			}
			return invoke.Outcome{}, nil
		},
	} {
		for _, window := range []time.Duration{0, 5 * time.Second} {
			tries = 0
			l := newLab(mapping.Settings{BatchSize: 100, Window: window, Filters: []string{`{"body":[{"prefix":"a"}]}`}})
			l.run = run
			clk := clock.NewVirtual(time.Unix(0, 0))
			l.with(t, clk, func(t *testing.T, stop func()) {
				l.send("a", "b")
				synctest.Wait()
				for range 2 {
					if _, err := clk.Advance(t.Context(), 20*time.Second); err != nil {
						t.Errorf("%s, window %v: %v", name, window, err)
					}
					synctest.Wait()
				}
				l.send("b") // which no filter wants
				synctest.Wait()
				stop()
				if r, err := clk.Advance(t.Context(), time.Hour); err != nil || !r.Next.IsZero() {
					t.Errorf("%s, window %v, at the end: %+v %v", name, window, r, err)
				}
			})
			want := []string{"b", "b"}
			if name == "success" || name == "throttled now" {
				want = []string{"a", "b", "b"}
			}
			l.check(t, name, &l.deleted, want...)
		}
	}
}

// While a function has no concurrency for more, no more is taken out of the queue
// for it: what is taken is in memory, and hidden from others.
func TestThrottledBacklog(t *testing.T) {
	const messages = 20_000
	l := newLab(mapping.Settings{BatchSize: 1})
	busy := make(chan struct{}, 2)
	l.run = func([]byte) (invoke.Outcome, error) {
		select {
		case busy <- struct{}{}:
		default:
			return invoke.Outcome{}, fault.New(fault.Throttled, "Rate Exceeded.")
		}
		rest(500 * time.Millisecond)
		<-busy
		return invoke.Outcome{}, nil
	}
	l.with(t, clock.System, func(t *testing.T, _ func()) {
		l.send(slices.Repeat([]string{"m"}, messages)...)
		most := 0
		for range 25 {
			rest(time.Second)
			l.mu.Lock()
			most = max(most, messages-len(l.queue)-len(l.deleted))
			l.mu.Unlock()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if most > firstBatches+1 { // one more waits to be admitted
			t.Errorf("%d messages are taken for a function that has room for two", most)
		}
		if len(l.deleted) < 60 { // of about 100 that were possible
			t.Errorf("the function has had %d messages", len(l.deleted))
		}
		l.queue = nil
	})
}

// What a mapping has taken and its function has not seen goes back at once, and was not received,
// whatever kept it: a throttle until its visibility timeout ends, a function that is gone, or
// a mapping that changed meanwhile.
func TestUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		window time.Duration
		run    error
		then   func(l *lab)
	}{
		"throttled":         {run: fault.New(fault.Throttled, "Rate Exceeded."), then: func(*lab) { rest(29 * time.Second) }},
		"disabled":          {window: time.Minute, then: func(l *lab) { l.change(func() { l.mapping.Enabled = false }) }},
		"changed":           {window: time.Minute, then: func(l *lab) { l.change(func() { l.mapping.BatchSize = 5 }) }},
		"throttled, ending": {run: fault.New(fault.Throttled, "Rate Exceeded."), then: func(l *lab) { l.change(func() { l.mapping.Enabled = false }) }},
		"the function gone": {window: time.Minute, then: func(l *lab) {
			l.mu.Lock()
			l.missing = fault.New(fault.ResourceNotFound, "")
			l.mu.Unlock()
			rest(time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(mapping.Settings{BatchSize: 100, Window: c.window})
			l.run = func([]byte) (invoke.Outcome, error) { return invoke.Outcome{}, c.run }
			l.with(t, clock.System, func(t *testing.T, _ func()) {
				l.send("a", "b")
				synctest.Wait()
				c.then(l)
				synctest.Wait()
				l.check(t, "given back", &l.unseen, "a", "b")
				l.check(t, "made visible, and counted", &l.returned)
			})
		})
	}
}

// change changes the mapping, and tells the pollers.
func (l *lab) change(how func()) {
	l.mu.Lock()
	how()
	now := l.mapping
	l.mu.Unlock()
	l.watch(now.ARN, &now)
}

// When a stop gives up waiting for a function, nothing is done to the queue any more
// once it returns, whatever becomes of the function: what it has comes again.
func TestStopCutsOff(t *testing.T) {
	l := newLab(mapping.Settings{BatchSize: 1})
	end := make(chan struct{})
	l.run = func([]byte) (invoke.Outcome, error) {
		<-end
		return invoke.Outcome{}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		l.sent, end = make(chan struct{}), make(chan struct{}) // of the bubble
		p, err := Start(Options{Engine: l, Pool: l, Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.send("a")
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Stop(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the stop: %v", err)
		}
		l.check(t, "given back", &l.returned, "a")
		close(end)
		synctest.Wait()
		l.check(t, "deleted", &l.deleted)
	})
}
