package admin

import (
	"net/http"
	"slices"
	"strings"

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

// Faults answers POST {"arn", "fault"}: the queue, function, delivery stream or platform application fails from now on as
// its owner's outage would make it ("unavailable"), or as an owner that asks for
// less ("throttled"), until "none". With * in the place of the name, all of SQS,
// SNS, Lambda or Firehose fails for the account and region; "internal" and "denied" are
// for that alone. It answers with what now holds. Faults are kept in memory
// only. A nil setter, which a server outside development has, is forbidden
// (403). parse refuses what cannot fail so.
func Faults(setter FaultSetter, parse func(resource, fault string) (arn.ARN, error)) http.Handler {
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
		if err := setter.SetFault(resource, request.Fault); err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, faultRequest{ARN: resource.String(), Fault: request.Fault})
	})
}

// FaultLister reports what fails on purpose: *shard.Engine.
type FaultLister interface {
	FaultsInForce() map[arn.ARN]string
}

// ListFaults answers with {"faults": [{"arn", "fault"}]}: what holds, in the order of
// ARNs. A nil lister, which a server outside development has, is forbidden (403).
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
