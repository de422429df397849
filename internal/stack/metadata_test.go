package stack_test

import (
	"slices"
	"testing"

	"godwit.dev/godwit/internal/stack"
)

// Metadata of a resource can be changed alone: that is an update, which touches nothing. The order of
// its members is no change, and a failed update brings it back. What an earlier version made is not
// known to have other metadata.
func TestMetadata(t *testing.T) {
	template := func(metadata, more string) string {
		return "Resources: {Q: {Type: AWS::SQS::Queue" + metadata + "}" + more + "}"
	}
	r := newRun()
	bound := func(text string) *stack.Design {
		d, err := r.bind(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	planned := func(text string) string {
		changes, _ := r.Plan(bound(text), nil)
		if len(changes) == 0 {
			return ""
		}
		if c := changes[0]; len(changes) != 1 || c.Replacement != "False" || !slices.Equal(c.Scope, []string{"Metadata"}) || c.Details[0].Recreation != "Never" {
			t.Errorf("%+v", changes)
		}
		return "Metadata"
	}
	has := func(want string) {
		t.Helper()
		if got := r.Resources["Q"].Metadata; got == nil || *got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	first, second := template(", Metadata: {a: 1, b: [x]}", ""), template(", Metadata: {a: 2}", "")
	r.Create(r.now, r.request(bound(first), stack.OnFailureRollback))
	r.runAll(nil)
	has(`{"a":1,"b":["x"]}`)
	for text, want := range map[string]string{first: "", template(", Metadata: {b: [x], a: 1}", ""): "", second: "Metadata", template("", ""): "Metadata"} {
		if got := planned(text); got != want {
			t.Errorf("%s changes %q", text, got)
		}
	}
	r.fails["create R"] = true
	r.Update(r.now, r.request(bound(template(", Metadata: {a: 2}", ", R: {Type: AWS::SQS::Queue}")), stack.OnFailureRollback))
	r.runAll(nil)
	if r.Status != stack.UpdateRollbackDone {
		t.Error(r.Status, r.Reason)
	}
	has(`{"a":1,"b":["x"]}`)
	r.told()
	r.Update(r.now, r.request(bound(second), stack.OnFailureRollback))
	r.runAll(nil)
	has(`{"a":2}`)
	for _, e := range r.events {
		if e.Logical == "Q" {
			t.Errorf("%+v", e)
		}
	}
	r.Resources["Q"].Metadata = nil
	if got := planned(first); got != "" {
		t.Errorf("of an earlier version: %q", got)
	}
}
