package operating

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

// former is what /_godwit/v1 calls a path of before: its action, and which parameter or member
// names the resource.
type former struct{ action, names string }

// formers are the paths of before, by method.
var formers = map[string]former{
	"GET /_godwit/clock":                 {"godwit:GetClock", ""},
	"POST /_godwit/clock":                {"godwit:AdvanceClock", ""},
	"GET /_godwit/faults":                {"godwit:ListFaults", ""},
	"POST /_godwit/faults":               {"godwit:SetFault", "arn"},
	"GET /_godwit/queue":                 {"godwit:GetQueue", "queue"},
	"GET /_godwit/events":                {"godwit:GetFunction", "function"},
	"GET /_godwit/backlog":               {"godwit:GetSubscription", "subscription"},
	"GET /_godwit/deliveries":            {"godwit:ListDeliveries", "subscription"},
	"POST /_godwit/deliveries/retry":     {"godwit:RetryDelivery", "subscription"},
	"POST /_godwit/deliveries/drop":      {"godwit:DropDelivery", "subscription"},
	"POST /_godwit/subscriptions/pause":  {"godwit:PauseSubscription", "subscription"},
	"POST /_godwit/subscriptions/resume": {"godwit:ResumeSubscription", "subscription"},
	"GET /_godwit/outbox":                {rest.Peeking, ""},
	"GET /_godwit/outbox/push":           {rest.Peeking, ""},
	"GET /_godwit/outbox/sms":            {rest.Peeking, ""},
}

// former refuses on a path of before what a policy denies of the same under /_godwit/v1, on the
// resource that the request names.
func (g *Gate) former(w http.ResponseWriter, r *http.Request, who *caller.Caller) error {
	of, ok := formers[r.Method+" "+r.URL.Path]
	if !ok {
		return nil
	}
	resource := r.URL.Query().Get(of.names)
	if r.Method != http.MethodGet && of.names != "" {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var named struct{ ARN, Subscription string }              // whatever their case, as they are read later
		_ = json.NewDecoder(bytes.NewReader(body)).Decode(&named) // what cannot be read does nothing
		resource = named.ARN + named.Subscription
	}
	if resource == "" {
		resource = g.pathARN(r)
	}
	if of.action == rest.Peeking && g.may(r, who, of.action, "", resource) != nil { // mails are messages
		return errNotOperator
	}
	for _, name := range namesOf(resource) {
		for _, action := range []string{of.action, broadOf(of.action)} {
			if action == "" {
				continue
			}
			result, err := g.decide(r.Context(), who, action, name, transport(r))
			if err != nil || result.Decision == policy.ExplicitDeny {
				return errNotOperator
			}
		}
	}
	return nil
}
