package async

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/consume/consumetest"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue/message"
)

// endpoint is a function that behaves as it is told to.
type endpoint struct {
	hanging chan struct{}

	mu   sync.Mutex
	b    consumetest.Behaviour
	runs int
}

// Invoke implements invoke.Invoker.
func (e *endpoint) Invoke(ctx context.Context, in invoke.Invocation) (invoke.Outcome, error) {
	e.mu.Lock()
	e.runs++
	b := e.b
	e.mu.Unlock()
	switch b {
	case consumetest.Fails:
		return throttled(in)
	case consumetest.Refuses:
		return failing(in)
	case consumetest.Hangs:
		e.hanging <- struct{}{}
		<-ctx.Done()
		return invoke.Outcome{}, ctx.Err()
	default:
		return invoke.Outcome{Payload: []byte("1")}, nil
	}
}

func TestConformance(t *testing.T) {
	consumetest.Run(t, func(t *testing.T) consumetest.Kind {
		f := &endpoint{hanging: make(chan struct{})}
		id := uuid.New()
		return consumetest.Kind{
			Service: "lambda",
			Create: func(w *consumetest.World) {
				_, err := w.Engine.CreateFunction(w.Context(), function.Create{
					ARN: fn, Code: function.Code{URL: "http://127.0.0.1:1"}, Revision: "1", ReadyRevision: "2",
					Config: function.Config{Package: "Image", TimeoutS: 3, MemoryMB: 128, DeadLetter: consumetest.DeadLetters},
				}, nil)
				w.Must(err)
				_, err = w.Clock.Advance(w.Context(), 0)
				w.Must(err)
				_, err = w.Engine.SetEventInvoke(w.Context(), function.SetEventInvoke{
					Function: fn, Change: function.EventInvokeChange{Retries: new(0)},
				})
				w.Must(err)
			},
			Plug: func(w *consumetest.World) consumetest.Dispatcher {
				return New(Options{Engine: w.Engine, Clock: w.Clock, Invoker: f})
			},
			Behave: func(_ *consumetest.World, b consumetest.Behaviour) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.b = b
			},
			Submit: func(w *consumetest.World) {
				w.Must(w.Engine.InvokeAsync(w.Context(), fn, function.Event{ID: id, Payload: []byte(`{"n":1}`)}))
			},
			Delete: func(w *consumetest.World) { w.Must(w.Engine.DeleteFunction(w.Context(), fn, "")) },
			Attempts: func() int {
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.runs
			},
			Left: func(w *consumetest.World) int64 {
				info, err := w.Engine.Events(w.Context(), fn)
				if fault.KindOf(err) == fault.ResourceNotFound {
					return 0
				}
				w.Must(err)
				return info.Due + info.Waiting + info.InFlight
			},
			Hanging: func() { <-f.hanging },
			Dead: func(w *consumetest.World, m *message.Message) {
				got := attributes(m)
				if string(m.Body) != `{"n":1}` || got["RequestID"] != "String "+id.String() || got["ErrorCode"] != "Number 200" || got["ErrorMessage"] != "String no" {
					w.Errorf("the dead letter is %q with %q", m.Body, got)
				}
			},
		}
	})
}
