package stack_test

import (
	"fmt"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/stack"
)

// Few words of a template do not make more than a stack may have, and events tell of large
// properties without them.
func TestPropertiesAreBounded(t *testing.T) {
	for n, want := range map[int]stack.Status{3: stack.CreateComplete, 45: stack.RollbackComplete} {
		var text strings.Builder
		text.WriteString("Resources:\n")
		for i := range n {
			fmt.Fprintf(&text, "  R%d: {Type: AWS::CDK::Metadata, Properties: {Analytics: {Fn::Sub: ['%s', {A: %s}]}}}\n", i, strings.Repeat("${A}", 50), strings.Repeat("x", 2000))
		}
		r := newRun()
		d, err := r.bind(text.String())
		if err != nil {
			t.Fatal(err)
		}
		r.Create(r.now, r.order(d, stack.OnFailureRollback))
		r.settle(nil)
		if r.Status != want {
			t.Errorf("a stack of %d resources is %s: %s", n, r.Status, r.Reason)
		}
		for _, e := range r.events {
			if len(e.Properties) > 64<<10 {
				t.Fatalf("an event has %d bytes", len(e.Properties))
			}
		}
	}
}

// What is not to be shown is masked wherever it is told.
func TestMasked(t *testing.T) {
	r := newRun()
	r.Source.Parameters = []stack.Parameter{{Key: "S", Value: "hunter2", NoEcho: true}}
	got := fmt.Sprintf("%v %v", stack.Masked(&r.Stack, map[string]any{"a": []any{"hunter2"}}), stack.Masked(&r.Stack, "not hunter2, please"))
	if want := "map[a:[****]] not ****, please"; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	d, err := r.bind("Resources: {A: {Type: AWS::SQS::Queue}}")
	if err != nil {
		t.Fatal(err)
	}
	o := r.order(d, stack.OnFailureNothing)
	o.Source = r.Source
	r.Create(r.now, o)
	r.taken()
	r.Done(r.now, "A", r.steps[0].Token, stack.Outcome{Reason: "hunter2 is no name"})
	r.taken()
	if told := r.told() + r.shown(); strings.Contains(told, "hunter2") || !strings.Contains(told, "**** is no name") {
		t.Error(told)
	}
}

// An update whose template cannot be read again after a start can be cancelled all the same.
func TestCancelWithoutDesign(t *testing.T) {
	r := newRun()
	r.Status = stack.UpdateInProgress
	r.Cancel(1, "")
	if r.settle(nil); r.Status != stack.UpdateRollbackDone {
		t.Error(r.Status)
	}
}
