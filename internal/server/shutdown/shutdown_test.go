package shutdown

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
)

func TestFailingStopsDoNotKeepOthersFromStopping(t *testing.T) {
	var st Stack
	var stopped []string
	one, two := errors.New("one"), errors.New("two")
	st.Push("a", func(context.Context) error { stopped = append(stopped, "a"); return one })
	st.Push("b", func(context.Context) error { stopped = append(stopped, "b"); return two })
	st.Push("c", func(context.Context) error { stopped = append(stopped, "c"); return nil })
	err := st.Unwind(t.Context())
	if !errors.Is(err, one) || !errors.Is(err, two) || !strings.Contains(err.Error(), "stopping a: one") {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff([]string{"c", "b", "a"}, stopped); d != "" {
		t.Errorf("stopped (-want +got):\n%s", d)
	}
	if err := st.Unwind(t.Context()); err != nil || len(stopped) != 3 {
		t.Errorf("second unwind: %v, %v", err, stopped)
	}
}

// clocked is closed after a time.
func clocked(after time.Duration) <-chan struct{} {
	over, _ := clock.After(clock.System, after)
	return over
}

// A part that does not stop holds nobody up: the process ends without it, and without
// what it may still use.
func TestStopLeavesAloneWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st Stack
		var stopped []string
		hang := make(chan struct{})
		st.Push("store", func(context.Context) error { stopped = append(stopped, "store"); return nil })
		st.Push("metrics", func(context.Context) error { <-hang; return nil })
		st.Push("deliveries", func(ctx context.Context) error {
			<-ctx.Done()
			<-clocked(time.Second) // to cut off attempts
			stopped = append(stopped, "deliveries")
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		began := clock.System.Now()
		err := st.Unwind(ctx)
		if took := clock.System.Now().Sub(began); took != 20*time.Second {
			t.Errorf("it took %s", took)
		}
		if !errors.Is(err, ErrAbandoned) || !strings.Contains(err.Error(), "stopping metrics, store: ") {
			t.Errorf("error %v", err)
		}
		if d := cmp.Diff([]string{"deliveries"}, stopped); d != "" {
			t.Errorf("stopped (-want +got):\n%s", d)
		}
		close(hang)
	})
}

// What is not through at the deadline is reported once, and not as a context's end; what
// failed beside that is reported as it is.
func TestStopTellsOnceWhatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st Stack
		late := func(ctx context.Context) error {
			<-ctx.Done()
			return errors.Join(nil, fmt.Errorf("waiting: %w", ctx.Err()))
		}
		failure := errors.New("no space")
		st.Push("store", func(ctx context.Context) error { return errors.Join(late(ctx), failure) })
		st.Push("queues", func(context.Context) error { return nil })
		st.Push("deliveries", late)
		st.Push("functions", late)
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		err := st.Unwind(ctx)
		if !errors.Is(err, ErrAbandoned) || !errors.Is(err, failure) {
			t.Fatal(err)
		}
		text := err.Error()
		if strings.Count(text, "functions") != 1 || !strings.Contains(text, "stopping functions, deliveries: ") ||
			strings.Count(text, ErrAbandoned.Error()) != 1 || !strings.Contains(text, "no space") || strings.Contains(text, "queues") {
			t.Error(text)
		}
		st.Push("early", func(context.Context) error { return context.DeadlineExceeded })
		if err := st.Unwind(t.Context()); errors.Is(err, ErrAbandoned) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the deadline: %v", err)
		}
	})
}
