package wire

import (
	"context"
	"net/http"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
)

// Within runs an operation for another part of this process, with the checks of a request: the
// caller's permissions, the account's limits, the audit log. call has the service, operation,
// caller, account and region; the rest is set here. Errors are the operation's.
func (h *Handler) Within(ctx context.Context, call *api.Call, in any) (out any, err error) {
	s := h.byName[call.Service]
	var op *operation
	if s != nil {
		op = s.operations[call.Operation]
	}
	if op == nil {
		return nil, fault.Newf(fault.InvalidAction, "there is no %s of %s", call.Operation, call.Service)
	}
	call.RequestID, call.Time, call.Describe, call.Inside = h.NewRequestID(), clock.System.Now(), s.describe, true
	if h.Clock != clock.System {
		call.Time = h.Clock.Now()
	}
	if call.Header == nil {
		call.Header = http.Header{}
	}
	if h.Audit != nil {
		defer func() {
			outcome := Outcome{Status: http.StatusOK}
			if err != nil {
				outcome.Code, outcome.Message, _ = s.describe(err)
				outcome.Status = s.errors[fault.KindOf(err)].Status
			}
			h.Audit(call, in, outcome)
		}()
	}
	if err := s.check(op, in, nil); err != nil {
		return nil, err
	}
	if h.Authorize != nil {
		if err := h.Authorize(ctx, call, &op.Operation, in); err != nil {
			return nil, err
		}
	}
	if h.Admit != nil {
		if err := h.Admit(call); err != nil {
			return nil, err
		}
	}
	return op.Invoke(ctx, call, in)
}
