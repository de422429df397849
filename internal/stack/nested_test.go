package stack_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/stack"
)

// has wants these queues, by the beginnings of their names, and nothing else.
func (r *run) has(t *testing.T, want ...string) {
	t.Helper()
	var is []string
	for _, name := range slices.Sorted(maps.Keys(r.things)) {
		is = append(is, name[:strings.LastIndexByte(name, '-')]+map[bool]string{true: ".fifo"}[strings.HasSuffix(name, ".fifo")])
	}
	slices.Sort(is)
	if !slices.Equal(is, want) {
		t.Errorf("there are %q, not %q", is, want)
	}
}

// The update of a nested stack keeps all that it replaces until that of its parent is complete, and
// goes back to it if that is rolled back, also behind a restart.
func TestNestedUpdateWaits(t *testing.T) {
	const (
		before = "Resources: {A: {Type: AWS::SQS::Queue}, B: {Type: AWS::SQS::Queue}}\nOutputs: {O: {Value: before}}"
		after  = "Resources: {A: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}, C: {Type: AWS::SQS::Queue}}\nOutputs: {O: {Value: after}}"
		other  = "Resources: {A: {Type: AWS::SQS::Queue, Properties: {FifoQueue: false}}, B: {Type: AWS::SQS::Queue}}\nOutputs: {O: {Value: other}}"
	)
	for _, restarts := range []bool{false, true} {
		r := newRun()
		request := func(text string) *stack.Request {
			d, err := r.bind(text)
			if err != nil {
				t.Fatal(err)
			}
			o := r.request(d, stack.OnFailureRollback)
			o.Nested = true
			return o
		}
		waits := func() {
			t.Helper()
			if restarts {
				r.restart()
			}
			if r.runAll(nil); !stack.Held(&r.Stack) {
				t.Fatalf("%s: %s", r.Status, r.Reason)
			}
		}
		r.Create(r.now, request(before))
		r.ends(t, stack.CreateComplete)
		r.Update(r.now, request(after))
		r.runAll(nil)
		waits()
		r.has(t, "s-A", "s-A.fifo", "s-B", "s-C")
		r.Revert(r.now, &stack.Request{})
		r.ends(t, stack.UpdateRollbackDone)
		r.has(t, "s-A", "s-B")
		if got := r.Outputs[0].Value; got != "before" {
			t.Errorf("gives %s", got)
		}
		r.Update(r.now, request(after))
		r.runAll(nil)
		waits()
		r.Update(r.now, request(other)) // the parent was not rolled back, and is updated again
		r.runAll(nil)
		waits()
		r.has(t, "s-A", "s-A", "s-A.fifo", "s-B", "s-C")
		r.BeginCleanup(r.now)
		r.ends(t, stack.UpdateComplete)
		r.has(t, "s-A", "s-B")
		if got := fmt.Sprint(r.Outputs[0].Value, r.Resources["A"].Properties["FifoQueue"]); got != "otherfalse" {
			t.Errorf("is %s", got)
		}
	}
}

// A stack has those within it that it has updated clean up once it is complete, and before it deletes them.
func TestParentBeginsCleanup(t *testing.T) {
	const nested = "Resources: {P: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: t, TimeoutInMinutes: %d}}, Q: {Type: AWS::SQS::Queue, DependsOn: P}%s}"
	cleaned := func(r *run) (n int) {
		for _, s := range r.took {
			if s.Action == stack.Cleanup {
				n++
			}
		}
		r.took = nil
		return n
	}
	r := newRun()
	request := func(minutes int, more, onFailure string) *stack.Request {
		d, err := r.bind(fmt.Sprintf(nested, minutes, more))
		if err != nil {
			t.Fatal(err)
		}
		return r.request(d, onFailure)
	}
	r.Create(r.now, request(1, "", stack.OnFailureRollback))
	r.ends(t, stack.CreateComplete)
	r.Update(r.now, request(2, "", stack.OnFailureRollback))
	r.ends(t, stack.UpdateComplete)
	if n := cleaned(r); n != 1 {
		t.Errorf("cleaned up %d times once it is complete", n)
	}
	r.fails["create R"] = true
	r.Update(r.now, request(3, ", R: {Type: AWS::SQS::Queue, DependsOn: P}", stack.OnFailureRollback))
	r.ends(t, stack.UpdateRollbackDone)
	if n := cleaned(r); n != 0 {
		t.Errorf("cleaned up %d times and rolled back", n)
	}
	r.Update(r.now, request(4, ", R: {Type: AWS::SQS::Queue, DependsOn: P}", stack.OnFailureNothing))
	r.ends(t, stack.UpdateFailed)
	if n := cleaned(r); n != 0 {
		t.Errorf("cleaned up %d times, though it can be rolled back", n)
	}
	r.Delete(r.now, &stack.Request{})
	r.ends(t, stack.DeleteComplete)
	if n := cleaned(r); n != 1 {
		t.Errorf("cleaned up %d times before it is deleted", n)
	}
}
