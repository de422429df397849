package eventsource

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
)

// Who is not asked any more, as the server stops, has not been refused: what was received for it
// would be hidden as if it had.
func TestMayAtAStop(t *testing.T) {
	acting := func(ctx context.Context, _ *function.Target, _ arn.ARN, _ string) (*caller.Caller, error) {
		return nil, cmp.Or(ctx.Err(), error(fault.New(fault.AccessDenied, "no")))
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := May(ctx, acting, &function.Target{}, arn.ARN{}); fault.KindOf(err) != fault.AccessDenied {
		t.Errorf("refused: %v", err)
	}
	cancel()
	if _, err := May(ctx, acting, &function.Target{}, arn.ARN{}); !errors.Is(err, context.Canceled) || fault.KindOf(err) == fault.AccessDenied {
		t.Errorf("at a stop: %v", err)
	}
}

// What is told of a key lasts for as long as the key is refused, or what was refused under a former
// one is hidden: a receive finds nothing meanwhile. It does not outlast the cause.
func TestFoundNothing(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []fault.Kind{fault.KMSDisabled, fault.KMSInvalidState, fault.KMSNotFound, fault.KMSAccessDenied, fault.KMSInvalidKeyUsage} {
		l, clk := newLab(mapping.Settings{}), clock.NewVirtual(time.Unix(0, 0))
		p := &poller{Options: &Options{Engine: l, Clock: clk}, pollers: &Pollers{}, mapping: l.mapping}
		told := func(when string, want fault.Kind) {
			t.Helper()
			if got := fault.KindOf(p.failing.err); got != want {
				t.Errorf("%v: %s %v is told, want %v", kind, when, got, want)
			}
		}
		none := fault.KindOf(nil)
		refuse := func() {
			p.refused(30 * time.Second)
			p.setFailing(fault.New(kind, "why"))
		}
		later := func(d time.Duration) {
			if _, err := clk.Advance(ctx, d); err != nil {
				t.Fatal(err)
			}
			p.foundNothing(ctx)
		}

		refuse()
		l.key = fault.New(fault.KMSNotFound, "gone")
		later(0)
		told("behind an empty receive", fault.KMSNotFound)
		later(time.Hour)
		told("once nothing is hidden", fault.KMSNotFound)
		l.key = nil
		later(0)
		told("once the key is back", none)

		refuse() // of what is under a former key
		later(29 * time.Second)
		told("while a message is hidden", kind)
		later(time.Second)
		told("once it was looked for again", none)

		refuse()
		l.key = fault.New(fault.KMSNotFound, "gone")
		later(0)
		refuse() // under it, once the queue has another one
		l.key = nil
		later(0)
		told("while a message under the last key is hidden", kind)

		refuse()
		p.setFailing(nil)
		told("behind a batch", none)
	}
}
