package async

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/consume"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/tracing"
)

// event is an event of a function's queue, from its lease until it is concluded. It
// implements consume.Work.
type event struct {
	*Dispatcher
	ev     *shard.QueuedEvent
	limit  int             // of attempts in flight at the function; 0: not known
	target function.Target // the current one; zero if it cannot be found
	config function.EventInvoke
	gone   error // why the function and its settings cannot be found
}

// Host implements consume.Work: capacity is reserved by function.
func (e *event) Host() (*consume.Pool, string) { return e.pool, e.ev.Function.String() }

// Plan implements consume.Work. An event that has ended also uses its reserved capacity.
func (e *event) Plan() consume.Plan { return consume.Plan{Limit: e.limit} }

// Attempt runs the function, unless the event has ended or ends now.
func (e *event) Attempt(ctx context.Context) consume.Result {
	p := &e.ev.Progress
	e.find(ctx)
	began := e.clock.Now()
	over := p.Condition != "" || e.tooOld(began)
	switch {
	case ctx.Err() != nil: // cancelled by Stop
		return consume.Result{Disposition: consume.Cancelled}
	case over && e.gone != nil && temporary(e.gone): // the receivers are not known now
		return consume.Result{Disposition: consume.Retry, Due: began.Add(consume.HandOverWait)}
	case p.Condition != "":
		return consume.Result{Disposition: consume.Ended}
	case e.gone == nil && e.target.Reserved != nil && *e.target.Reserved == 0:
		return e.end(function.ZeroReservedConcurrency)
	case over:
		return e.end(function.EventAgeExceeded)
	case e.gone != nil:
		return e.refused(e.gone)
	}
	out, err := e.invoke(ctx)
	if ctx.Err() != nil && (err != nil || out.FunctionError != "") {
		// Cancelled by Stop: the attempt does not count, as it says nothing about the
		// function.
		return consume.Result{Disposition: consume.Cancelled}
	}
	if err != nil {
		return e.refused(err)
	}
	e.emitAt(began, invoke.AsyncEventAge, float64(began.Sub(e.ev.Accepted).Milliseconds()))
	p.Attempts++
	p.Refusals, p.Refusal, p.Status = 0, "", 0
	p.Response = &function.Response{Version: e.target.Version, Error: out.FunctionError}
	if len(out.Payload) <= function.MaxEventBytes {
		p.Response.Payload = out.Payload
	}
	if out.FunctionError == "" {
		return e.end(function.Success)
	}
	p.Failures++
	if p.Failures > e.config.MaxRetries() {
		return e.end(function.RetriesExhausted)
	}
	return e.again(function.FailureDelay(p.Failures))
}

// invoke runs the function. If the event has a recorded trace, the attempt has a trace of its
// own, with a link to that.
func (e *event) invoke(ctx context.Context) (invoke.Outcome, error) {
	in := invoke.Invocation{Target: e.target, RequestID: uuid.UUID(e.ev.ID).String(), Payload: e.ev.Payload, Trace: e.ev.Trace}
	var span *tracing.Span
	if e.options.Tracer != nil && in.Trace != "" {
		span = e.options.Tracer.Follow(tracing.Consumer, "process "+e.target.Name, []tracing.Context{tracing.FromXRay(in.Trace)})
	}
	if span != nil {
		span.Set(invoke.AboutFunction(&e.target)...)
		span.Set(tracing.Invocation(in.RequestID), tracing.Attempt(e.ev.Progress.Attempts+1))
		in.Trace = span.Context().XRay()
	}
	out, err := invoke.Until(ctx, e.options.Invoker, in)
	invoke.EndSpan(span, &out, err)
	return out, err
}

// find looks up the function and its retry configuration.
func (e *event) find(ctx context.Context) {
	var unset error
	e.target, e.gone = e.engine.Function(ctx, e.ev.Function, e.ev.Qualifier)
	e.config, unset = e.engine.EventInvoke(ctx, e.ev.Function, e.ev.Qualifier)
	if e.gone == nil {
		e.gone = unset
	}
}

// end records how the event has ended.
func (e *event) end(condition function.Condition) consume.Result {
	e.ev.Progress.Condition = condition
	return consume.Result{Disposition: consume.Ended}
}

// refused handles an attempt for which the function could not run.
func (e *event) refused(err error) consume.Result {
	p := &e.ev.Progress
	throttled := invoke.Throttled(err)
	p.Attempts++
	p.Refusals++
	p.Refusal, p.Status = e.options.Explain(err), http.StatusInternalServerError
	if throttled {
		p.Status = http.StatusTooManyRequests
	}
	e.logger.Debug("a function could not be run with an event", "function", e.ev.Function.String(),
		"requestId", uuid.UUID(e.ev.ID).String(), "attempt", p.Attempts, "reason", p.Refusal)
	v := e.again(function.RefusalDelay(p.Refusals))
	if throttled {
		v.Pause = throttleWait
	}
	return v
}

// again retries the event after a delay, unless it is too old by then.
func (e *event) again(delay time.Duration) consume.Result {
	// Due times are stored in milliseconds.
	due := e.clock.Now().Truncate(time.Millisecond).Add(delay)
	if e.tooOld(due) {
		return e.end(function.EventAgeExceeded)
	}
	return consume.Result{Disposition: consume.Retry, Due: due}
}

// Ack implements consume.Work.
func (e *event) Ack() { e.engine.EventDone(e.ev) }

// Retry implements consume.Work.
func (e *event) Retry(due time.Time) { e.engine.RetryEvent(e.ev, due) }

// Release implements consume.Work.
func (e *event) Release() { e.engine.ReleaseEvent(e.ev) }

// tooOld reports whether no attempt may begin at a time any more. At the deadline itself it
// may.
func (e *event) tooOld(at time.Time) bool {
	return at.UnixMilli() > e.ev.Accepted.Add(e.config.MaxAge()).UnixMilli()
}

// emit reports an invoke.Event of the function.
func (e *event) emit(kind invoke.EventKind, value float64) { e.emitAt(e.clock.Now(), kind, value) }

func (e *event) emitAt(at time.Time, kind invoke.EventKind, value float64) {
	if e.options.Events != nil {
		e.options.Events(invoke.Event{
			Function: e.ev.Function, Qualifier: e.ev.Qualifier, Version: e.target.Version, Kind: kind, At: at, Value: value,
		})
	}
}
