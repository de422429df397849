// Package apitest asks the handlers of a service without a wire, for their tests.
package apitest

import (
	"encoding/json"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
)

// Asker asks a service's operations.
type Asker struct {
	T   *testing.T
	ops map[string]api.Operation
	// call is what the handler knows of the call of an operation.
	call func(operation string) *api.Call
}

// New makes an Asker of operations.
func New(t *testing.T, operations []api.Operation, call func(operation string) *api.Call) *Asker {
	a := &Asker{T: t, ops: map[string]api.Operation{}, call: call}
	for _, op := range operations {
		a.ops[op.Name] = op
	}
	return a
}

// Ask gives the answer to an input, both in JSON, or the refusal.
func (a *Asker) Ask(operation, in string) (string, error) {
	a.T.Helper()
	op, ok := a.ops[operation]
	if !ok {
		a.T.Fatalf("there is no %s", operation)
	}
	input := op.New()
	if err := json.Unmarshal([]byte(in), input); err != nil {
		a.T.Fatal(operation, err)
	}
	out, err := op.Invoke(a.T.Context(), a.call(operation), input)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(out)
	if err != nil {
		a.T.Fatal(err)
	}
	return string(text), nil
}

// Answered is the kind of what is not refused.
const Answered = fault.Internal

// Check asks, and looks for want in the answer, or in the text of a refusal of a kind.
func (a *Asker) Check(operation, in string, kind fault.Kind, want string) {
	a.T.Helper()
	got, err := a.Ask(operation, in)
	refused, _ := refusal.Of(err)
	switch {
	case kind == Answered && err != nil:
		a.T.Errorf("%s %.120s: %v", operation, in, err)
	case kind == Answered && !strings.Contains(got, want):
		a.T.Errorf("%s %.120s: %s, want %s", operation, in, got, want)
	case kind != Answered && err == nil:
		a.T.Errorf("%s %.120s: %s, want kind %d", operation, in, got, kind)
	case kind != Answered && (refused == nil || refused.Kind != kind || !strings.Contains(refused.Message, want)):
		a.T.Errorf("%s %.120s: kind %d, %s, %s; want kind %d, %s", operation, in, fault.KindOf(err), refusal.Text(err), got, kind, want)
	}
}
