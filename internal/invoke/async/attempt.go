package async

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
)

// attempt is one attempt at an event, from the moment that it was taken to the
// call that concludes it.
type attempt struct {
	*Consumer
	line   *line
	ev     *shard.QueuedEvent
	target function.Target // as it is now; zero if it cannot be found
	config function.EventInvoke

	throttled bool // there was no concurrency for it
}

// run makes the attempt and concludes it.
func (a *attempt) run() {
	ctx, p := a.attempts, &a.ev.Progress
	var gone, unset error
	a.target, gone = a.engine.Function(ctx, a.ev.Function, a.ev.Qualifier)
	a.config, unset = a.engine.EventInvoke(ctx, a.ev.Function, a.ev.Qualifier)
	if gone == nil {
		a.know(a.line, &a.target)
		gone = unset
	}
	began := a.clock.Now()
	over := p.Condition != "" || a.tooOld(began)
	switch {
	case ctx.Err() != nil: // cut off by Stop
		a.engine.ReleaseEvent(a.ev)
		return
	case over && gone != nil && temporary(gone): // whom to tell is not known now
		a.engine.RetryEvent(a.ev, began.Add(handOverWait))
		return
	case p.Condition != "":
		a.end(p.Condition)
		return
	case gone == nil && a.target.Reserved != nil && *a.target.Reserved == 0:
		a.end(function.ZeroReservedConcurrency)
		return
	case over:
		a.end(function.EventAgeExceeded)
		return
	case gone != nil:
		a.refused(gone)
		return
	}
	out, err := invoke.Until(ctx, a.options.Invoker, invoke.Invocation{
		Target: a.target, RequestID: uuid.UUID(a.ev.ID).String(), Payload: a.ev.Payload, Trace: a.ev.Trace,
	})
	if ctx.Err() != nil && (err != nil || out.FunctionError != "") {
		// Cut off by Stop: it says nothing about the function, and does not count.
		a.engine.ReleaseEvent(a.ev)
		return
	}
	if err != nil {
		a.throttled = invoke.Throttled(err)
		a.refused(err)
		return
	}
	a.tellAt(began, invoke.AsyncEventAge, float64(began.Sub(a.ev.Accepted).Milliseconds()))
	p.Attempts++
	p.Refusals, p.Refusal, p.Status = 0, "", 0
	p.Response = &function.Response{Version: a.target.Version, Error: out.FunctionError}
	if len(out.Payload) <= function.MaxEventBytes {
		p.Response.Payload = out.Payload
	}
	if out.FunctionError == "" {
		a.end(function.Success)
		return
	}
	p.Failures++
	if p.Failures > a.config.MaxRetries() {
		a.end(function.RetriesExhausted)
		return
	}
	a.later(function.FailureDelay(p.Failures))
}

// refused notes that the function could not be run.
func (a *attempt) refused(err error) {
	p := &a.ev.Progress
	p.Attempts++
	p.Refusals++
	p.Refusal, p.Status = err.Error(), http.StatusInternalServerError
	if a.throttled {
		p.Status = http.StatusTooManyRequests
	}
	a.logger.Debug("a function could not be run with an event", "function", a.ev.Function.String(),
		"requestId", uuid.UUID(a.ev.ID).String(), "attempt", p.Attempts, "reason", p.Refusal)
	a.later(function.RefusalDelay(p.Refusals))
}

// later makes the event due again, unless it is too old by then.
func (a *attempt) later(delay time.Duration) {
	// Due times are kept in milliseconds.
	due := a.clock.Now().Truncate(time.Millisecond).Add(delay)
	if a.tooOld(due) {
		a.end(function.EventAgeExceeded)
		return
	}
	a.engine.RetryEvent(a.ev, due)
}

// tooOld reports that no attempt may begin at a moment any more. One that is due
// at the deadline itself is made.
func (a *attempt) tooOld(at time.Time) bool {
	return at.UnixMilli() > a.ev.Accepted.Add(a.config.MaxAge()).UnixMilli()
}

// tell tells of something that happened to the function.
func (a *attempt) tell(kind invoke.EventKind, value float64) { a.tellAt(a.clock.Now(), kind, value) }

func (a *attempt) tellAt(at time.Time, kind invoke.EventKind, value float64) {
	if a.options.Events != nil {
		a.options.Events(invoke.Event{
			Function: a.ev.Function, Qualifier: a.ev.Qualifier, Version: a.target.Version, Kind: kind, At: at, Value: value,
		})
	}
}
