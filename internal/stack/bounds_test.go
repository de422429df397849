package stack_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
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
		r.Create(r.now, r.request(d, stack.OnFailureRollback))
		r.runAll(nil)
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

// What is not to be shown is masked wherever it is reported.
func TestMasked(t *testing.T) {
	r := newRun()
	r.Input.Parameters = []stack.Parameter{{Key: "S", Value: "hunter2", NoEcho: true}}
	got := fmt.Sprintf("%v %v", stack.Masked(&r.Stack, map[string]any{"a": []any{"hunter2"}}), stack.Masked(&r.Stack, "not hunter2, please"))
	if want := "map[a:[****]] not ****, please"; got != want {
		t.Errorf("it says %q, not %q", got, want)
	}
	d, err := r.bind("Resources: {A: {Type: AWS::SQS::Queue}}")
	if err != nil {
		t.Fatal(err)
	}
	o := r.request(d, stack.OnFailureNothing)
	o.Input = r.Input
	r.Create(r.now, o)
	r.taken()
	r.Done(r.now, "A", r.steps[0].Token, stack.Outcome{Reason: "hunter2 is no name"})
	r.taken()
	if told := r.told() + r.shown(); strings.Contains(told, "hunter2") || !strings.Contains(told, "**** is no name") {
		t.Error(told)
	}
}

// A hidden value is masked in each form in which it gets into properties and reasons: as a number, as
// items of a list, escaped, and where it begins with another one.
func TestMaskedForms(t *testing.T) {
	r := newRun()
	for i, value := range []string{"secret", "secret-and-more", "first-item, other-item", `quo"ted\<value>`, "86399"} {
		r.Input.Parameters = append(r.Input.Parameters, stack.Parameter{Key: strconv.Itoa(i), Value: value, NoEcho: true})
	}
	for _, test := range []struct{ value, want any }{
		{"secret-and-more", "****"},
		{"a secret-and-more", "a ****"},
		{[]any{"first-item", "other-item", "third-item"}, []any{"****", "****", "third-item"}},
		{json.Number("86399"), "****"},
		{json.Number("86398"), json.Number("86398")},
		{fmt.Sprintf("message: %q", `quo"ted\<value> is no name`), `message: "**** is no name"`},
		{`{"a":"quo\"ted\\\u003cvalue\u003e"}`, `{"a":"****"}`},
		{`{"a":"quo\"ted\\<value>"}`, `{"a":"****"}`},
	} {
		if diff := cmp.Diff(test.want, stack.Masked(&r.Stack, test.value)); diff != "" {
			t.Errorf("%v: %s", test.value, diff)
		}
	}
}

// What was not to be shown is masked as well where what was made of it is deleted: behind an update
// that has replaced it, behind a rollback, and where it was left half made.
func TestMaskedOnceReplaced(t *testing.T) {
	const (
		template = "Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: %s, Tags: [{Key: k, Value: %s}]}}}"
		failing  = "Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: %s, Tags: [{Key: k, Value: %s}]}}, B: {Type: AWS::SQS::Queue, DependsOn: A}}"
	)
	r := newRun()
	request := func(template, onFailure, secret string) *stack.Request {
		return r.secretRequest(t, fmt.Sprintf(template, "named-by-"+secret[:5], secret), onFailure, secret)
	}
	ends := func(want stack.Status) { t.Helper(); r.ends(t, want) }
	r.Create(r.now, request(template, stack.OnFailureRollback, "first-secret"))
	ends(stack.CreateComplete)
	r.Update(r.now, request(template, stack.OnFailureRollback, "other-secret"))
	ends(stack.UpdateComplete)
	r.fails["create B"] = true
	r.Update(r.now, request(failing, stack.OnFailureRollback, "third-secret"))
	ends(stack.UpdateRollbackDone)
	r.Update(r.now, request(failing, stack.OnFailureNothing, "fails-secret"))
	ends(stack.UpdateFailed)
	r.Update(r.now, request(template, stack.OnFailureRollback, "fifth-secret"))
	ends(stack.UpdateComplete)
	deleted := 0
	for _, e := range r.events {
		if told := e.Properties + e.Reason; strings.Contains(told, "-secret") {
			t.Errorf("%s of %s tells of %s", e.Status, e.Physical, told)
		}
		if e.Logical == "A" && e.Status == stack.DeleteComplete {
			deleted++
		}
	}
	if deleted < 3 {
		t.Errorf("only %d queues were replaced: the test proves nothing", deleted)
	}
	if len(r.Hidden) > 0 {
		t.Errorf("nothing of before is left, and %d values are kept", len(r.Hidden))
	}
}

// So it is where the update was begun by a version that kept nothing hidden for it.
func TestMaskedOnceResumed(t *testing.T) {
	r := newRun()
	for i, secret := range []string{"first-secret", "other-secret"} {
		d, err := r.bind(fmt.Sprintf("Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: n%d, Tags: [{Key: k, Value: %s}]}}}", i, secret))
		if err != nil {
			t.Fatal(err)
		}
		o := r.request(d, stack.OnFailureRollback)
		o.Input.Parameters = []stack.Parameter{{Key: "S", Value: secret, NoEcho: true}}
		if i == 0 {
			r.Create(r.now, o)
			r.runAll(nil)
			continue
		}
		r.Update(r.now, o)
		r.taken()
		r.Hidden = nil
		r.restart()
		r.runAll(nil)
	}
	deleted := false
	for _, e := range r.events {
		deleted = deleted || e.Status == stack.DeleteComplete
		if strings.Contains(e.Properties, "-secret") {
			t.Errorf("%s of %s tells of %s", e.Status, e.Physical, e.Properties)
		}
	}
	if r.Status != stack.UpdateComplete || !deleted {
		t.Errorf("%s, the first queue deleted: %t", r.Status, deleted)
	}
}

// secretRequest asks for a template that a NoEcho parameter's value was put into.
func (r *run) secretRequest(t *testing.T, template, onFailure, secret string) *stack.Request {
	t.Helper()
	d, err := r.bind(template)
	if err != nil {
		t.Fatal(err)
	}
	o := r.request(d, onFailure)
	o.Input.Parameters = []stack.Parameter{{Key: "S", Value: secret, NoEcho: true}}
	return o
}

// ends takes all steps, and wants a status then.
func (r *run) ends(t *testing.T, want stack.Status) {
	t.Helper()
	if r.runAll(nil); r.Status != want {
		t.Fatalf("%s: %s", r.Status, r.Reason)
	}
}

// What a rollback was told to leave as it is stays masked, and what there is nothing of any more is
// not kept, however often an update fails.
func TestMaskedOnceSkipped(t *testing.T) {
	r := newRun()
	request := func(onFailure, secret string) *stack.Request {
		return r.secretRequest(t, "Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: q, Tags: [{Key: k, Value: "+secret+"}]}}}", onFailure, secret)
	}
	ends := func(want stack.Status) { t.Helper(); r.ends(t, want) }
	r.Create(r.now, request(stack.OnFailureRollback, "first-secret"))
	ends(stack.CreateComplete)
	r.fails["update A"] = true
	for i := range 5 {
		r.Update(r.now, request(stack.OnFailureNothing, fmt.Sprintf("next-%d-secret", i)))
		ends(stack.UpdateFailed)
	}
	if len(r.Hidden) > 2 { // of what it was, and of what it was to be by the last update but one
		t.Errorf("hidden are %q", r.Hidden)
	}
	r.Rollback(r.now, &stack.Request{})
	ends(stack.UpdateRollbackFailed)
	r.ContinueRollback(r.now, &stack.Request{Keep: []string{"A"}})
	ends(stack.UpdateRollbackDone)
	if len(r.Hidden) != 1 {
		t.Errorf("hidden are %q", r.Hidden)
	}
	r.Delete(r.now, &stack.Request{})
	ends(stack.DeleteComplete)
	for _, e := range r.events {
		if strings.Contains(e.Properties, "-secret") {
			t.Errorf("%s of %s tells of %s", e.Status, e.Physical, e.Properties)
		}
	}
}

// A deletion knows what a resource was before an update of it failed: it may be so in part.
func TestDeletionAfterFailedUpdate(t *testing.T) {
	const template = "Resources: {A: {Type: AWS::SQS::Queue, Properties: {QueueName: q, DelaySeconds: %d}}}"
	r := newRun()
	request := func(delay int) *stack.Request {
		d, err := r.bind(fmt.Sprintf(template, delay))
		if err != nil {
			t.Fatal(err)
		}
		return r.request(d, stack.OnFailureNothing)
	}
	r.Create(r.now, request(1))
	r.runAll(nil)
	r.fails["update A"] = true
	r.Update(r.now, request(2))
	r.runAll(nil)
	r.fails["delete A"] = true
	for range 2 { // the second one begins where the first has failed
		r.Delete(r.now, &stack.Request{})
		r.taken()
		s := r.steps[0]
		if got := fmt.Sprintf("%v %v", s.Target.Properties["DelaySeconds"], s.Now["DelaySeconds"]); s.Action != stack.Delete || got != "2 1" {
			t.Errorf("%s of a delay that is to be, and was: %s", s.Action, got)
		}
		r.runAll(nil)
		if r.Status != stack.DeleteFailed {
			t.Fatalf("%s: %s", r.Status, r.Reason)
		}
	}
	r.fails = map[string]bool{}
	r.Delete(r.now, &stack.Request{})
	if r.runAll(nil); r.Status != stack.DeleteComplete {
		t.Errorf("%s: %s", r.Status, r.Reason)
	}
}

// What has got another logical id, and is found again by what it is, as a subscription is, is not deleted
// under the one of before; nor is it if the update is rolled back.
func TestRenamedIsKept(t *testing.T) {
	const subscription = "Resources: {%s: {Type: AWS::SNS::Subscription, Properties: {TopicArn: t, Protocol: sqs, Endpoint: e}}%s}"
	r := newRun()
	request := func(id, more string) *stack.Request {
		d, err := r.bind(fmt.Sprintf(subscription, id, more))
		if err != nil {
			t.Fatal(err)
		}
		return r.request(d, stack.OnFailureRollback)
	}
	r.one = "arn:subscription"
	r.Create(r.now, request("A", ""))
	r.ends(t, stack.CreateComplete)
	r.fails["create Q"] = true
	r.Update(r.now, request("B", ", Q: {Type: AWS::SQS::Queue, DependsOn: B}"))
	r.ends(t, stack.UpdateRollbackDone)
	if len(r.things) != 1 {
		t.Errorf("behind a rollback there are %v", r.things)
	}
	r.Update(r.now, request("B", ""))
	r.ends(t, stack.UpdateComplete)
	if len(r.things) != 1 || r.Resources["A"] != nil {
		t.Errorf("there are %v", r.things)
	}
	r.Delete(r.now, &stack.Request{})
	r.ends(t, stack.DeleteComplete)
	if len(r.things) != 0 {
		t.Errorf("there are still %v", r.things)
	}
}

// What is made in an operation that is rolled back goes, if the request or its policy says so, however
// the operation ends; what was there before stays.
func TestRetainExceptOnCreate(t *testing.T) {
	for _, policy := range []string{"Retain", "RetainExceptOnCreate"} {
		for _, onFailure := range []string{stack.OnFailureRollback, stack.OnFailureDelete, stack.OnFailureNothing} {
			r := newRun()
			request := func(id string) *stack.Request {
				text := "Resources: {" + id + ": {Type: AWS::SQS::Queue, DeletionPolicy: " + policy + "}, B: {Type: AWS::SQS::Queue, DependsOn: " + id + "}}"
				o := r.request(nil, onFailure)
				o.Input.RetainExceptOnCreate = policy == "Retain"
				read, err := template.Parse([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				bound, err := stack.Bind(read, &r.Stack, &o.Input, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				o.Design = o.Input.Of(bound)
				r.design = o.Design
				return o
			}
			r.fails["create B"] = true
			r.Create(r.now, request("A"))
			if r.runAll(nil); onFailure == stack.OnFailureNothing {
				r.Rollback(r.now, &stack.Request{Input: stack.Input{RetainExceptOnCreate: true}})
				r.runAll(nil)
			}
			if len(r.things) > 0 {
				t.Errorf("%s, %s: %s leaves %v", policy, onFailure, r.Status, r.things)
			}
		}
	}
}

// The role that a rollback is given acts for what comes behind it, too: the one of before may be gone.
func TestRollbackInAnotherRole(t *testing.T) {
	r := newRun()
	request := func(text string) *stack.Request {
		d, err := r.bind("Resources: {A: {Type: AWS::SQS::Queue}" + text + "}")
		if err != nil {
			t.Fatal(err)
		}
		o := r.request(d, stack.OnFailureNothing)
		o.Input.Role = "gone"
		return o
	}
	r.Create(r.now, request(""))
	r.ends(t, stack.CreateComplete)
	r.fails["create C"] = true
	r.Update(r.now, request(", B: {Type: AWS::SQS::Queue}, C: {Type: AWS::SQS::Queue, DependsOn: B}"))
	r.ends(t, stack.UpdateFailed)
	r.Rollback(r.now, &stack.Request{Input: stack.Input{Role: "another"}})
	if r.taken(); r.Status != stack.UpdateRollbackCleanup || r.Input.Role != "another" {
		t.Errorf("%s in the role %s", r.Status, r.Input.Role)
	}
	r.ends(t, stack.UpdateRollbackDone)
}

// What cannot be deleted of what an update has replaced can be retained, too.
func TestDeletionRetainsWhatWasReplaced(t *testing.T) {
	r := newRun()
	request := func(text string) *stack.Request {
		d, err := r.bind("Resources: {A: {Type: AWS::SQS::Queue" + text + "}")
		if err != nil {
			t.Fatal(err)
		}
		return r.request(d, stack.OnFailureNothing)
	}
	r.Create(r.now, request("}"))
	r.ends(t, stack.CreateComplete)
	r.fails["create B"], r.fails["delete A"] = true, true
	r.Update(r.now, request(", Properties: {FifoQueue: true}}, B: {Type: AWS::SQS::Queue, DependsOn: A}"))
	r.ends(t, stack.UpdateFailed)
	r.Delete(r.now, &stack.Request{})
	r.ends(t, stack.DeleteFailed)
	r.Delete(r.now, &stack.Request{Keep: []string{"A"}})
	r.ends(t, stack.DeleteComplete)
}

// An update whose template cannot be read again after a start can be cancelled all the same.
func TestCancelWithoutDesign(t *testing.T) {
	r := newRun()
	r.Status = stack.UpdateInProgress
	r.Cancel(1, "")
	if r.runAll(nil); r.Status != stack.UpdateRollbackDone {
		t.Error(r.Status)
	}
}
