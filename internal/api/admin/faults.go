package admin

import (
	"net/http"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/stream"
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
// (403).
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
		all := resource.Resource == "*"
		if err != nil || !canFail(resource, all) {
			writeError(w, http.StatusBadRequest, "arn: want the ARN of a queue, a function, a delivery stream or a platform application, arn:aws:sns:REGION:ACCOUNT:direct/sms or direct/email, or the ARN of all of sqs, sns, lambda or firehose: arn:aws:sqs:REGION:ACCOUNT:*")
			return
		}
		switch request.Fault {
		case "unavailable", "throttled", "none":
		case "internal", "denied":
			if !all {
				writeError(w, http.StatusBadRequest, "fault: "+request.Fault+" is for all of a service, not for one queue, function or stream")
				return
			}
		default:
			writeError(w, http.StatusBadRequest, `fault: want "unavailable", "throttled", "internal", "denied" or "none"`)
			return
		}
		if err := setter.SetFault(resource, request.Fault); err != nil {
			writeFault(w, err)
			return
		}
		writeJSON(w, http.StatusOK, faultRequest{ARN: resource.String(), Fault: request.Fault})
	})
}

// FaultLister tells what fails on purpose: *shard.Engine.
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

// canFail reports whether a resource can be made to fail.
func canFail(resource arn.ARN, all bool) bool {
	switch resource.Service {
	case "sqs":
		return resource.Resource != ""
	case "firehose":
		_, ok := stream.NameOf(resource)
		return all || ok
	case "sns":
		protocol, direct := resource.DirectProtocol()
		direct = direct && (protocol == "sms" || protocol == "email")
		_, _, application := resource.SplitApplication()
		return all || direct || application
	case "lambda":
		_, qualifier, ok := resource.SplitFunction()
		return all || ok && qualifier == ""
	default:
		return false
	}
}
