package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
)

// FaultSetter injects faults; *shard.Engine implements it.
type FaultSetter interface {
	SetFault(resource arn.ARN, fault string) error
}

// faultRequest is the body of Faults.
type faultRequest struct {
	ARN   string `json:"arn"`
	Fault string `json:"fault"`
}

// faultAnswer is its answer.
type faultAnswer struct {
	faultRequest
	Note string `json:"note,omitempty"`
}

// Faults answers POST {"arn", "fault"}: it injects a fault into a queue, function, delivery
// stream or platform application, until "none". The fault is like an outage ("unavailable")
// or like throttling ("throttled"). With * as the name, all of SQS, SNS, Lambda or Firehose
// fails in the account and region; only these can have "internal" and "denied". The answer is
// the fault in force, with what note says of it before it is set. Faults are in memory only. A nil
// setter, as outside development, is forbidden (403). parse refuses an ARN or a fault that is not
// supported.
func Faults(setter FaultSetter, parse func(resource, fault string) (arn.ARN, error), note func(ctx context.Context, resource arn.ARN, fault string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if setter == nil {
			writeError(w, http.StatusForbidden, "faults can be set in godwit dev only")
			return
		}
		var request faultRequest
		if !readJSON(w, r, &request) {
			return
		}
		resource, err := parse(request.ARN, request.Fault)
		if err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		said := note(r.Context(), resource, request.Fault)
		if err := setter.SetFault(resource, request.Fault); err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, faultAnswer{faultRequest{resource.String(), request.Fault}, said})
	})
}

// FaultLister lists the injected faults; *shard.Engine implements it.
type FaultLister interface {
	FaultsInForce() map[arn.ARN]string
}

// ListFaults answers with {"faults": [{"arn", "fault"}]}: the faults in force, ordered by
// ARN. A nil lister, as outside development, is forbidden (403).
func ListFaults(lister FaultLister) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if lister == nil {
			writeError(w, http.StatusForbidden, "there are faults in godwit dev only")
			return
		}
		list := []faultRequest{} // not null
		for resource, name := range lister.FaultsInForce() {
			list = append(list, faultRequest{ARN: resource.String(), Fault: name})
		}
		slices.SortFunc(list, func(a, b faultRequest) int { return strings.Compare(a.ARN, b.ARN) })
		writeJSON(w, http.StatusOK, struct {
			Faults []faultRequest `json:"faults"`
		}{list})
	})
}
