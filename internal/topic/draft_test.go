package topic

import (
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/topic/filter"
)

// A policy that was compiled before a command is not compiled in it, nor when its scope
// changes, and is what it would be else.
func TestDraftsAreNotCompiledAgain(t *testing.T) {
	var members strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&members, `,"k%d":["x"]`, i)
	}
	policy := `{"$or":[{"a":["x"]},{` + members.String()[1:] + `}]}`
	w := newWorld()
	name := mustCreate(t, w, "Orders")
	sub := mustSubscribe(t, w, Subscribe{Topic: name, Protocol: "sqs", Endpoint: queue(1)})
	set := func(attribute, value string, draft *filter.Draft) func() {
		return func() {
			w.batch.Reset()
			if err := w.SetSubscriptionAttribute(w.now, SetSubscriptionAttribute{Subscription: sub.ARN, Name: attribute, Value: value, Draft: draft}, &w.batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	draft := Draft(map[string]string{"FilterPolicy": policy})
	compiling := testing.AllocsPerRun(2, set("FilterPolicy", policy, nil))
	with := testing.AllocsPerRun(2, set("FilterPolicy", policy, draft))
	other := testing.AllocsPerRun(2, set("FilterPolicy", policy, Draft(map[string]string{"FilterPolicy": `{"b":["y"]}`})))
	scope := "MessageBody"
	scoping := testing.AllocsPerRun(2, func() {
		set("FilterPolicyScope", scope, nil)()
		scope = map[string]string{"MessageBody": "MessageAttributes", "MessageAttributes": "MessageBody"}[scope]
	})
	const least = 1000 // allocations of compiling, beside those of the index
	if other-with < least || compiling-with < least {
		t.Errorf("%.0f allocations with a draft, %.0f where the policy is compiled, %.0f with another draft", with, compiling, other)
	}
	if scoping > with+least/10 {
		t.Errorf("%.0f allocations for a scope, %.0f with a draft", scoping, with)
	}
	if Draft(map[string]string{"RawMessageDelivery": "true"}) != nil || Draft(map[string]string{"FilterPolicy": "\xff"}) != nil {
		t.Error("a draft of what is no policy")
	}
	set("FilterPolicy", "", draft)()
	if found, _ := w.Subscription(sub.ARN); found.Filter != nil {
		t.Error("a draft of another policy was taken")
	}
}
