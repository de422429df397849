package admin

import (
	"net/http"

	"godwit.dev/godwit/internal/arn"
)

// FaultSetter makes a resource fail on purpose: *shard.Engine.
type FaultSetter interface {
	SetFault(resource arn.ARN, fault string) error
}

// faultRequest is the body of Faults, and its answer.
type faultRequest struct {
	ARN   string `json:"arn"`
	Fault string `json:"fault"`
}

// Faults answers POST {"arn", "fault"}: the queue fails from now on as its
// owner's outage would make it ("unavailable"), or as an owner that asks for
// less ("throttled"), until "none". It answers with what now holds. Faults are
// kept in memory only. A nil setter, which a server outside development has, is
// forbidden (403).
func Faults(setter FaultSetter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if setter == nil {
			writeError(w, http.StatusForbidden, "faults can be set in godwit dev only")
			return
		}
		var request faultRequest
		if !readJSON(w, r, &request) {
			return
		}
		resource, err := arn.Parse(request.ARN)
		if err != nil || resource.Service != "sqs" || resource.Resource == "" {
			writeError(w, http.StatusBadRequest, "arn: want the ARN of a queue")
			return
		}
		switch request.Fault {
		case "unavailable", "throttled", "none":
		default:
			writeError(w, http.StatusBadRequest, `fault: want "unavailable", "throttled" or "none"`)
			return
		}
		if err := setter.SetFault(resource, request.Fault); err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, faultRequest{ARN: resource.String(), Fault: request.Fault})
	})
}
